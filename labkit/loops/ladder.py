"""The steps of the ladder of loops, derived from the files in this folder."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Step:
    """One step: its module, and the function that is named like the step.

    `kernel(A, B, C)` runs it; `launch(A, B, C)` checks the arguments first.
    """

    name: str
    slug: str
    module: ModuleType
    kernel: Callable
    launch: Callable[..., None]

    @property
    def idea(self) -> str:
        """The first line of the step's docstring."""
        return self.module.__doc__.splitlines()[0]


def ladder() -> list[Step]:
    """All steps, in their order."""
    return [_step(path.stem) for path in sorted(Path(__file__).parent.glob("s[0-9][0-9]_*.py"))]


def step(slug: str) -> Step:
    """One step by its slug: `step("blocked")`."""
    steps = {found.slug: found for found in ladder()}
    if slug not in steps:
        raise KeyError(f"the ladder of loops has no step {slug!r}; it has {', '.join(steps)}")
    return steps[slug]


def _step(name):
    module = import_module(f"{__package__}.{name}")
    slug = name.partition("_")[2]
    return Step(name, slug, module, getattr(module, slug), module.launch)
