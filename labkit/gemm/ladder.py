"""The steps of a ladder, derived from the files in its folder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Step:
    """One step: its module, and the kernel that is named like the step.

    `kernel[*step.geometry(M, N), stream, step.shared_bytes](*step.arguments(A, B, C))` launches it;
    `launch(A, B, C, stream)` checks the arguments first.
    """

    name: str
    slug: str
    ladder: str
    module: ModuleType
    kernel: Any
    geometry: Callable[[int, int], tuple]
    arguments: Callable[..., tuple]
    shared_bytes: int
    launch: Callable[..., None]

    @property
    def idea(self) -> str:
        """The first line of the step's docstring."""
        return self.module.__doc__.splitlines()[0]


def ladder(precision: str) -> list[Step]:
    """All steps of a ladder ("fp32"), in their order.

    Raises
    ------
    KeyError
        There is no such ladder; the message lists those there are.
    """
    folder = Path(__file__).parent / precision
    names = sorted(path.stem for path in folder.glob("s[0-9][0-9]_*.py"))
    if not names:
        known = sorted({path.parent.name for path in Path(__file__).parent.glob("*/s[0-9][0-9]_*.py")})
        raise KeyError(f"there is no ladder {precision!r} of gemm; there is {', '.join(known)}")
    return [_step(precision, name) for name in names]


@cache
def step(precision: str, slug: str) -> Step:
    """One step by its slug: `step("fp32", "tiled")`."""
    steps = {found.slug: found for found in ladder(precision)}
    if slug not in steps:
        raise KeyError(f"the ladder {precision!r} has no step {slug!r}; it has {', '.join(steps)}")
    return steps[slug]


def _step(precision: str, name: str) -> Step:
    module = import_module(f"{__package__}.{precision}.{name}")
    slug = name.partition("_")[2]
    shared_bytes = getattr(module, "SHARED_BYTES", 0)
    arguments = getattr(module, "arguments", _as_they_are)
    return Step(
        name, slug, precision, module, getattr(module, slug), module.geometry, arguments, shared_bytes, module.launch
    )


def _as_they_are(*arrays):
    return arrays
