"""`show(step)`: a kernel as it stands in the package, with its CUDA C++ twin folded beneath it."""

import inspect
from dataclasses import dataclass
from html import escape
from typing import Any

from labkit import places
from labkit.exercises.source import python_function


@dataclass(frozen=True)
class Listing:
    """A kernel's source, and its twin's if there is one."""

    title: str
    python: str
    cuda_cpp: str = ""

    def __repr__(self):
        return self.python

    def _repr_markdown_(self):
        text = f"```python\n{self.python}\n```\n"
        if self.cuda_cpp:
            text += (
                f"\n<details><summary>{escape(self.title)} in CUDA C++</summary>\n\n"
                f"```c++\n{self.cuda_cpp.rstrip()}\n```\n\n</details>\n"
            )
        return text


def show(step: Any) -> Listing:
    """The kernel of a step, or any kernel or function, as its file has it.

    Parameters
    ----------
    step
        A step of a ladder, such as `ladder("fp32")[0]`, or a kernel.
    """
    function = python_function(getattr(step, "kernel", step))
    twin = _twin(function)
    return Listing(
        function.__name__,
        inspect.getsource(function).rstrip(),
        twin.read_text(encoding="utf-8") if twin else "",
    )


def _twin(function):
    """kernels/gemm/fp32/s03_tiled.cu for labkit.gemm.fp32.s03_tiled, if it is there."""
    package, *path = function.__module__.split(".")
    twin = places.folder("kernels").joinpath(*path).with_suffix(".cu")
    return twin if package == "labkit" and twin.is_file() else None
