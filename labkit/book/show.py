"""`show(step)`: a kernel as it stands in the package, with its CUDA C++ twin folded beneath it."""

import inspect
from dataclasses import dataclass
from html import escape
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer, PythonLexer

from labkit import places
from labkit.exercises.source import python_function

# JupyterLab's colours of code, by pygments' names: a listing looks like a cell, in a light theme and in a dark one.
COLOURS = {
    "keyword": "k kc kd kn kr kt ow",
    "comment": "c c1 ch cm cp cpf",
    "number": "mb mf mh mi",
    "string": "s s1 s2 sd",
    "builtin": "nb",
    "def": "nf",
    "meta": "nd",
    "operator": "o",
}
RULES = [
    "div.labkit-listing .linenos { opacity: 0.5; margin-right: 1.5em; user-select: none; }",
    *(
        f"div.labkit-listing :is(.{', .'.join(names.split())}) {{ color: var(--jp-mirror-editor-{kind}-color); }}"
        for kind, names in COLOURS.items()
    ),
]


@dataclass(frozen=True)
class Listing:
    """A kernel's source with the line of its file where it begins, and its twin's if there is one."""

    title: str
    python: str
    first_line: int
    cuda_cpp: str = ""

    def __repr__(self):
        lines = self.python.splitlines()
        width = len(str(self.first_line + len(lines)))
        return "\n".join(f"{number:{width}}  {line}" for number, line in enumerate(lines, self.first_line))

    def _repr_html_(self):
        style = f"<style>{' '.join(RULES)}</style>"
        text = style + _numbered(self.python, PythonLexer(), self.first_line)
        if self.cuda_cpp:
            twin = _numbered(self.cuda_cpp, CudaLexer(), 1)
            text += f"<details><summary>{escape(self.title)} in CUDA C++</summary>{twin}</details>"
        return text


def show(step: Any) -> Listing:
    """The kernel of a step, or any kernel or function, as its file has it, with the numbers of its lines there.

    Parameters
    ----------
    step
        A step of a ladder, such as `ladder("fp32")[0]`, or a kernel.
    """
    function = python_function(getattr(step, "kernel", step))
    lines, first_line = inspect.getsourcelines(function)
    twin = _twin(function)
    return Listing(
        function.__name__,
        "".join(lines).rstrip(),
        first_line,
        twin.read_text(encoding="utf-8") if twin else "",
    )


def _numbered(code, lexer, first_line):
    formatter = HtmlFormatter(
        cssclass="labkit-listing",
        prestyles="white-space: pre; overflow-x: auto",  # stronger than JupyterLab, which breaks long lines anywhere
        linenos="inline",
        linenostart=first_line,
    )
    return highlight(code, lexer, formatter)


def _twin(function):
    """kernels/gemm/fp32/s03_tiled.cu for labkit.gemm.fp32.s03_tiled, if it is there."""
    package, *path = function.__module__.split(".")
    twin = places.folder("kernels").joinpath(*path).with_suffix(".cu")
    return twin if package == "labkit" and twin.is_file() else None
