"""A ladder and its steps: what their files state, launched or simulated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from inspect import getfile, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from labkit.formats import Format
from labkit.ladder.launch import Launch, TooLarge
from labkit.ladder.problem import Problem
from labkit.places import STEPS


@dataclass(frozen=True)
class Simulated:
    """A step's launches in the simulator, in their order, and its operands afterwards; a CPU loop has no trace here."""

    traces: tuple[Any, ...]
    operands: tuple[Any, ...]

    @property
    def errors(self) -> tuple[Any, ...]:
        """Findings that are errors, of all launches."""
        return tuple(finding for trace in self.traces for finding in trace.errors)


@dataclass(frozen=True)
class Step:
    """One step of a ladder. What else its file defines can be had as well: `step.TILE`, `step.geometry(M, N)`."""

    ladder: "Ladder"
    name: str
    module: ModuleType

    def __getattr__(self, name):
        if name.startswith("__"):  # copy and pickle ask before there is a module
            raise AttributeError(name)
        return getattr(self.module, name)

    def __repr__(self):
        return f"<step {self.path}>"

    @property
    def slug(self) -> str:
        return self.name.partition("_")[2]

    @property
    def path(self) -> str:
        """Operation, ladder and file: "gemm/fp32/s03_tiled"; of its twin in kernels/ too."""
        return f"{self.ladder.path}/{self.name}"

    @property
    def idea(self) -> str:
        """The first line of the step's docstring."""
        return (self.module.__doc__ or "").splitlines()[0]

    @property
    def kernel(self) -> Any:
        """The kernel that is named like the step."""
        return getattr(self.module, self.slug)

    @property
    def formats(self) -> tuple[Format, ...]:
        return self._said("FORMATS")

    @property
    def problem(self) -> type[Problem]:
        return self._said("PROBLEM")

    @property
    def examples(self) -> list[Problem]:
        """Small problems with awkward sizes, which allow the errors of this step."""
        problem = getattr(self.module, "ALLOWING", self.problem)
        return [problem(*sizes) for sizes in self._said("EXAMPLES")]

    @property
    def benched(self) -> list[Problem]:
        """Problems to be timed."""
        return [self.problem(*sizes) for sizes in self._said("BENCHED")]

    @property
    def largest(self) -> list[Problem]:
        """Problems of which the step makes its largest blocks, where no example and no timed problem is such."""
        return [self.problem(*sizes) for sizes in getattr(self.module, "LARGEST", ())]

    @property
    def standing(self) -> Problem:
        """The problem whose run in the simulator says where the step stands under a roofline."""
        return self.problem(*self._said("STANDING"))

    def _said(self, name):
        """What the step's file says, or else its ladder."""
        for module in (self.module, self.ladder.module):
            if hasattr(module, name):
                return getattr(module, name)
        raise LookupError(f"the ladder {self.ladder.path} states no {name}: add it to its __init__.py")

    @property
    def compared(self) -> Problem:
        """The problem with which recorded steps are compared: the last that is timed, if nothing is said."""
        is_said = hasattr(self.module, "COMPARED") or hasattr(self.ladder.module, "COMPARED")
        return self.problem(*self._said("COMPARED")) if is_said else self.benched[-1]

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block, in bytes, where its file states it."""
        return getattr(self.module, "SHARED_BYTES", 0)

    def launches(
        self, *operands, format: Format | None = None, workspace=None, limit_bytes: int | None = None
    ) -> list[Launch]:
        """What the step launches for these operands, which are checked.

        Parameters
        ----------
        operands
            As `Problem.operands` gives them.
        format
            Of the operands; the ladder's first one if it is None.
        workspace
            A `labkit.arrays.workspace.Workspace`, for a step that needs memory beside its operands.
        limit_bytes
            The most of it that is wanted, for a step that can do with less; None for as much as is best.
        """
        format = format or self.formats[0]
        if format not in self.formats:
            raise ValueError(f"{self.slug} does not multiply {format}: it takes {', '.join(map(str, self.formats))}")
        taken = _parameters(self.module.launches)
        if "problem" in taken and not isinstance(operands[-1], Problem):
            raise TypeError(f"{operands[-1]!r} is no problem: give the sizes last, as {self.problem.__name__}(...)")
        options = {"format": format, "workspace": workspace, "limit_bytes": limit_bytes}
        return self.module.launches(*operands, **{name: value for name, value in options.items() if name in taken})

    def takes(self, *operands, format: Format | None = None) -> bool:
        """Whether the step takes operands of this size: they may have more bytes, or fewer, than in another format."""
        from labkit.arrays.workspace import Counted

        try:
            self.launches(*operands, format=format, workspace=Counted())
        except TooLarge:
            return False
        return True

    def launch(self, *operands, stream=0, format: Format | None = None) -> None:
        """Runs the step, on the GPU if there is one, with memory that it takes on the stream."""
        from labkit.arrays.workspace import on_stream

        with on_stream(stream) as workspace:
            for launch in self.launches(*operands, format=format, workspace=workspace):
                launch.run(stream)

    def simulate(self, *operands, format: Format | None = None, **options) -> Simulated:
        """Runs the step in the simulator; the operands stay as they are. Options are those of `labkit.simulate`."""
        from labkit.arrays.workspace import Workspace
        from labkit.simulator.in_place import simulate_in_place

        copies = tuple(map(_copy, operands))
        launches = self.launches(*copies, format=format, workspace=Workspace())
        traces = []
        for one in launches:
            if one.grid == ():
                one.run()
                continue
            options["shared_bytes"] = one.shared_bytes
            traces.append(simulate_in_place(one.kernel, one.grid, one.block, *one.arguments, **options))
        return Simulated(tuple(traces), copies)


def _copy(operand):
    if hasattr(operand, "copy_to_host"):
        return operand.copy_to_host()
    return operand.copy() if isinstance(operand, np.ndarray) else operand


@cache
def _parameters(function: Callable) -> set[str]:
    return set(signature(function).parameters)


@dataclass(frozen=True)
class Ladder(Sequence):
    """The steps of a ladder, in their order, and what they compute."""

    operation: str
    name: str  # "" where the operation has its steps itself
    module: ModuleType

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, place):
        return self.steps[place]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self):
        return f"<ladder {self.path}: {', '.join(step.slug for step in self)}>"

    @property
    def path(self) -> str:
        return f"{self.operation}/{self.name}" if self.name else self.operation

    @property
    def formats(self) -> tuple[Format, ...]:
        return self.module.FORMATS

    @property
    def record(self) -> str:
        """The name under which its measurements are recorded."""
        return getattr(self.module, "RECORD", self.operation)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        folder = Path(getfile(self.module)).parent
        names = sorted(path.stem for path in folder.glob(STEPS))
        steps = tuple(Step(self, name, loaded(f"{self.module.__name__}.{name}")) for name in names)
        known = {}
        for step in steps:
            if (other := known.setdefault(step.slug, step)) is not step:
                raise ValueError(f"the steps {other.path} and {step.path} have one slug: name one otherwise")
        return steps

    def step(self, slug: str) -> Step:
        """One step by its slug.

        Raises
        ------
        KeyError
            There is no such step; the message lists those there are.
        """
        steps = {step.slug: step for step in self}
        if slug not in steps:
            raise KeyError(f"the ladder {self.path!r} has no step {slug!r}; it has {', '.join(steps)}")
        return steps[slug]


def loaded(name: str) -> ModuleType:
    """The module of that name; an ImportError says which file fails, and why."""
    try:
        return import_module(name)
    except Exception as error:
        why, path = f"{type(error).__name__}: {error}", name.replace(".", "/")
        raise ImportError(f"{path} cannot be loaded ({why}): mend it, or take it away", name=name) from error
