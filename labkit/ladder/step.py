"""Ladders, the kernels for one computation from naive to fastest, and their steps, a kernel each: how steps run."""

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
    """What the simulator saw of each of a step's launches (a `Trace`), and the operands as the launches left them.

    A launch that is a loop on the CPU (its grid is empty) has no trace.
    """

    traces: tuple[Any, ...]
    operands: tuple[Any, ...]

    @property
    def errors(self) -> tuple[Any, ...]:
        """The faults, such as races, that the simulator found in all launches."""
        return tuple(finding for trace in self.traces for finding in trace.errors)


@dataclass(frozen=True)
class Step:
    """One kernel of a ladder, which is a folder of kernels for one operation, from the simplest to the fastest.

    Names of the step's file are attributes too, where the class has no other: `step.TILE`, `step.geometry(M, N)`.
    """

    ladder: "Ladder"
    name: str
    module: ModuleType

    def __getattr__(self, name):
        if name.startswith("__"):  # copy and pickle look these up before `module` is set
            raise AttributeError(name)
        return getattr(self.module, name)

    def __repr__(self):
        return f"<step {self.path}>"

    @property
    def slug(self) -> str:
        return self.name.partition("_")[2]

    @property
    def path(self) -> str:
        """Operation, ladder and file: "gemm/fp32/s03_tiled"; also the path of its CUDA C++ version in kernels/."""
        return f"{self.ladder.path}/{self.name}"

    @property
    def idea(self) -> str:
        """First line of the step's docstring."""
        return (self.module.__doc__ or "").splitlines()[0]

    @property
    def kernel(self) -> Any:
        """Kernel, which is named like the slug."""
        return getattr(self.module, self.slug)

    @property
    def formats(self) -> tuple[Format, ...]:
        return self._declared("FORMATS")

    @property
    def problem(self) -> type[Problem]:
        return self._declared("PROBLEM")

    @property
    def examples(self) -> list[Problem]:
        """Small problems with awkward sizes, and with the error bounds of this step."""
        problem = getattr(self.module, "LOOSER_PROBLEM", self.problem)
        return [problem(*sizes) for sizes in self._declared("EXAMPLES")]

    @property
    def benched(self) -> list[Problem]:
        """Timed problems."""
        return [self.problem(*sizes) for sizes in self._declared("BENCHED")]

    @property
    def largest(self) -> list[Problem]:
        """Problems with the step's largest blocks, if neither examples nor timed problems have them."""
        return [self.problem(*sizes) for sizes in getattr(self.module, "LARGEST", ())]

    @property
    def roofline_problem(self) -> Problem:
        """Problem whose simulated run gives the step's point under a roofline."""
        return self.problem(*self._declared("ROOFLINE_PROBLEM"))

    def _declared(self, name):
        """Return a declaration of the step's file, or else of its ladder."""
        for module in (self.module, self.ladder.module):
            if hasattr(module, name):
                return getattr(module, name)
        raise LookupError(f"the ladder {self.ladder.path} states no {name}: add it to its __init__.py")

    @property
    def compared(self) -> Problem:
        """Problem by which recorded steps are compared; by default the last timed one."""
        is_declared = hasattr(self.module, "COMPARED") or hasattr(self.ladder.module, "COMPARED")
        return self.problem(*self._declared("COMPARED")) if is_declared else self.benched[-1]

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes, if the step's file states it; else 0."""
        return getattr(self.module, "SHARED_BYTES", 0)

    def launches(
        self, *operands, format: Format | None = None, workspace=None, limit_bytes: int | None = None
    ) -> list[Launch]:
        """Check operands, and return the step's launches for them.

        Parameters
        ----------
        operands
            Operands in the order of `Problem.operands`, and then the problem itself, if the step takes one.
        format
            Format of the operands; None for the first one of the step.
        workspace
            A `labkit.arrays.workspace.Workspace`, for a step that needs further memory.
        limit_bytes
            Limit of the workspace in bytes, for a step that can do with less; None for the fastest size.
        """
        format = format or self.formats[0]
        if format not in self.formats:
            raise ValueError(f"{self.slug} does not take {format}: it takes {', '.join(map(str, self.formats))}")
        parameters = _parameters(self.module.launches)
        if "problem" in parameters and not isinstance(operands[-1], Problem):
            raise TypeError(f"{operands[-1]!r} is not a problem: give the sizes last, as {self.problem.__name__}(...)")
        options = {"format": format, "workspace": workspace, "limit_bytes": limit_bytes}
        return self.module.launches(*operands, **{name: options[name] for name in options.keys() & parameters})

    def takes(self, *operands, format: Format | None = None) -> bool:
        """Return whether the step accepts operands of this size; the limit may depend on the format."""
        from labkit.arrays.workspace import CountingWorkspace

        try:
            self.launches(*operands, format=format, workspace=CountingWorkspace())
        except TooLarge:
            return False
        return True

    def launch(self, *operands, stream=0, format: Format | None = None) -> None:
        """Run the step, on the GPU if there is one; its workspace is allocated on the stream."""
        from labkit.arrays.workspace import on_stream

        with on_stream(stream) as workspace:
            for launch in self.launches(*operands, format=format, workspace=workspace):
                launch.run(stream)

    def simulate(self, *operands, format: Format | None = None, **options) -> Simulated:
        """Run the step in the simulator on copies of the operands. Options are those of `labkit.simulate`."""
        from labkit.arrays.workspace import Workspace
        from labkit.simulator.in_place import simulate_in_place

        copies = tuple(map(_copy, operands))
        launches = self.launches(*copies, format=format, workspace=Workspace())
        traces = []
        for launch in launches:
            if launch.grid == ():
                launch.run()
                continue
            options["shared_bytes"] = launch.shared_bytes
            traces.append(simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **options))
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
    """The steps of a ladder in their order, and the constants that its `__init__.py` declares."""

    operation: str
    name: str  # "" if the operation's own folder has the steps
    module: ModuleType

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        return self.steps[index]

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
        """Name of the record of its measurements, a file in `labkit/results/`."""
        return getattr(self.module, "RECORD", self.operation)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        folder = Path(getfile(self.module)).parent
        names = sorted(path.stem for path in folder.glob(STEPS))
        steps = tuple(Step(self, name, load_module(f"{self.module.__name__}.{name}")) for name in names)
        by_slug = {}
        for step in steps:
            if (other := by_slug.setdefault(step.slug, step)) is not step:
                raise ValueError(f"the steps {other.path} and {step.path} have one slug: name one otherwise")
        return steps

    def step(self, slug: str) -> Step:
        """Return a step by its slug; a KeyError lists the existing ones."""
        steps = {step.slug: step for step in self}
        if slug not in steps:
            raise KeyError(f"the ladder {self.path!r} has no step {slug!r}; it has {', '.join(steps)}")
        return steps[slug]


def load_module(name: str) -> ModuleType:
    """Import a module by its name; an ImportError says which file fails, and why."""
    try:
        return import_module(name)
    except Exception as error:
        why, path = f"{type(error).__name__}: {error}", name.replace(".", "/")
        raise ImportError(f"{path} cannot be loaded ({why}): fix or delete it", name=name) from error
