"""What every operation is made of: problems, ladders of steps, and the launches of a step.

An operation is a package of labkit with a `problem.py`. A ladder is a folder of it, or the package itself, with a file
a step, `sNN_slug.py`. A step's file has a kernel named like its slug and a function `launches(*operands)`, which checks
the operands and gives a list of `Launch`. Where a step computes in several formats, `launches` also takes `format`;
where it needs memory beside its operands, it takes `workspace`, and asks that for arrays; and `limit_bytes` where it
can do with less of that. The ladder's `__init__.py` says what its steps compute:

    PROBLEM     the class of problems, a subclass of `labkit.ladder.Problem`
    FORMATS     the formats of its operands, from `labkit.formats`
    EXAMPLES    sizes of small problems, awkward ones, which every step must get right
    BENCHED     sizes of problems to be timed
    STANDING    sizes of the problem whose run in the simulator says where a step stands under a roofline
    COMPARED    sizes of the problem with which recorded steps are compared, if not the last of BENCHED
    RECORD      the name under which they are recorded, if not the operation's

A step's file may say otherwise for itself. A step that may be further off than others of its ladder says so too, and
one that makes larger blocks for other problems than these:

    ALLOWING    a subclass of PROBLEM that allows its errors, of which its EXAMPLES are
    LARGEST     sizes of problems of which it makes the largest blocks, or those with most work for a thread

Nothing else lists steps: benches, tests, standings and roofline dots are derived from the folders.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float64, Shaped

from labkit.arrays.addresses import lies_in_order
from labkit.arrays.operands import check_array, dtype_of, sides
from labkit.formats import BF16, FP32, Format
from labkit.places import STEPS, operations

NONE = MappingProxyType({})
MOST_BLOCKS = 2**31 - 1, 65535, 65535  # of a grid along x, y and z (CUDA C++ Programming Guide, "Compute Capabilities")


class TooLarge(ValueError):
    """A step takes such a problem, but not of these sizes: `why` says which, in a sentence without advice."""

    def __init__(self, why: str, advice: str = "choose another step"):
        super().__init__(f"{why}: {advice}")
        self.why = why


@dataclass(frozen=True)
class Launch:
    """A kernel with its grid, its block and its arguments; a loop for the CPU has neither grid nor block.

    Raises
    ------
    TooLarge
        The grid has more blocks along an axis than a GPU takes.
    """

    kernel: Any
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0

    def __post_init__(self):
        grid = self.grid if isinstance(self.grid, tuple) else (self.grid,)
        for axis, count, most in zip("xyz", grid, MOST_BLOCKS, strict=False):
            if count > most:
                raise TooLarge(
                    f"the grid has {count} blocks along {axis}, and a GPU takes {most}",
                    "take a smaller problem, or another step",
                )

    def run(self, stream=0) -> None:
        """On the GPU if there is one, else in the simulator."""
        if self.grid == ():
            self.kernel(*self.arguments)
        else:
            self.kernel[self.grid, self.block, stream, self.shared_bytes](*self.arguments)


@dataclass(frozen=True)
class Expected:
    """What an operand must hold afterwards: `value` in float64, each element within `bound` of it."""

    value: Float64[np.ndarray, "..."]
    bound: Float64[np.ndarray, "..."]

    def holds(self, found: Shaped[np.ndarray, "..."]) -> bool:
        """Whether all of the found values are within their bounds; NaN is right where it is expected."""
        if np.shape(found) != np.shape(self.value):
            return False
        with np.errstate(invalid="ignore"):
            same = (found == self.value) | (np.isnan(found) & np.isnan(self.value))
            return bool(((np.abs(found - self.value) <= self.bound) | same).all())


class Problem(ABC):
    """What a step computes, for certain sizes: a subclass is a frozen dataclass of these.

    A subclass whose steps call `check` says of each array, by its name and in the order of operands, its `shapes` and
    `axes`; and what is said of it in sentences.
    """

    called: ClassVar[str] = "problem"
    arrays_called: ClassVar[Mapping[str, str]] = NONE  # where that is more than their names
    in_float32: ClassVar[Sequence[str]] = ()  # arrays that hold that in every format
    in_int32: ClassVar[Sequence[str]] = ()
    in_bf16: ClassVar[Sequence[str]] = ()  # as bits
    in_order: ClassVar[bool] = True  # whether steps take arrays in C order alone

    def __str__(self):
        return "x".join(map(str, self.fields.values()))

    @property
    def fields(self) -> dict[str, int]:
        """The sizes by their names, as recorded rows hold them."""
        return asdict(self)

    @property
    @abstractmethod
    def flops(self) -> int:
        """Floating-point operations that the problem needs, however many more a step makes."""

    @abstractmethod
    def least_bytes(self, format: Format = FP32) -> int:
        """What must cross device memory at least: each operand once."""

    @abstractmethod
    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Operands as a step takes them: random inputs, and outputs in which what stays unwritten shows."""

    @abstractmethod
    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, Expected]:
        """What each output must hold, by its position, for these operands as they were before."""

    def telling(self, expected: dict[int, Expected]) -> dict[int, Expected]:
        """Of what outputs must hold, that by which the relative error is told."""
        return expected

    def part(self, operands: tuple) -> tuple:
        """Operands of a part of the problem, where the whole takes long to check."""
        return operands

    def twin_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """What a CUDA C++ twin of a step takes behind its arrays."""
        return tuple(self.fields.values())

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        return {}

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes by its name."""
        return {}

    def misfit(self, takes: Mapping[str, tuple]) -> str:
        """Why a step does not apply, in a sentence; "" where it does.

        Parameters
        ----------
        takes
            What the step takes: the values that it knows, by the attribute of this class that must have one of them.
        """
        for name, known in takes.items():
            if getattr(self, name) not in known:
                values = " or ".join(map(str, known))
                return f"this step takes {name} = {values}, and the {self.called} has {name} = {getattr(self, name)}"
        return ""

    def check(self, *arrays, takes: Mapping[str, tuple] = NONE, dtype=np.float32) -> None:
        """Raises where a step does not apply to this problem, or an array is not as the problem has it.

        Parameters
        ----------
        arrays
            Those of `shapes`, in their order.
        takes
            As `misfit` has it.
        dtype
            What the arrays hold, but for those of `in_float32`, `in_int32` and `in_bf16`.

        Raises
        ------
        TypeError
            One of them is no array, or holds another type.
        ValueError
            One of them has another shape or gaps in memory, or the step does not apply.
        """
        if why := self.misfit(takes):
            raise ValueError(f"{why}: choose another step")
        for (name, shape), X in zip(self.shapes.items(), arrays, strict=True):
            check_array(name, X)
            kinds = dict.fromkeys(self.in_float32, np.float32) | dict.fromkeys(self.in_int32, np.int32)
            kinds |= dict.fromkeys(self.in_bf16, BF16.dtype)
            wanted = np.dtype(kinds.get(name, dtype))
            if dtype_of(X) != wanted:
                raise TypeError(f"{name} holds {X.dtype}, but this step takes {wanted}: convert it")
            said = self.arrays_called.get(name, name)
            if tuple(X.shape) != shape:
                found, needed = map(sides, (X.shape, shape))
                raise ValueError(
                    f"{said} is {found}, but {self.axes[name]} of this {self.called} is {needed}: "
                    "give it that shape, or state other sizes"
                )
            if self.in_order and not lies_in_order(X):
                raise ValueError(
                    f"{said} is not in C order, and steps take neighbours at once: "
                    f"pass np.ascontiguousarray({name}), which is a copy"
                )

    def is_right(self, before: tuple, after: tuple, format: Format = FP32) -> bool:
        """Whether the outputs are right among the operands after a step, which were these before it."""
        expected = self.expected(before, format)
        found = {place: np.asarray(after[place]) for place in expected}
        return all(one.holds(_held(found[place], format).decode(found[place])) for place, one in expected.items())


def _held(X: Shaped[np.ndarray, "..."], format: Format) -> Format:
    """The format of an output: that of results, or float32 where a step gives that beside them, as statistics are."""
    return format.result if X.dtype == format.result.dtype else FP32


def relative_error(problem: Problem, expected: dict[int, Expected], after: tuple, format: Format) -> float:
    """How far outputs are off what is expected of a part of the problem, by the norms of errors and of values.

    It is NaN where an element was not written, and the norm of the errors where all values are zero.
    """
    error = size = 0.0
    for place, one in problem.telling(expected).items():
        held = _held(after[place], format)
        if held.is_nan(after[place]).any():
            return float("nan")
        found = held.decode(problem.part(after)[place])
        error += float(np.sum((found - one.value) ** 2))
        size += float(np.sum(one.value**2))
    return float(np.sqrt(error / size)) if size else float(np.sqrt(error))


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
        return self.module.__doc__.splitlines()[0]

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
        folder = Path(self.module.__file__).parent
        names = sorted(path.stem for path in folder.glob(STEPS))
        steps = tuple(Step(self, name, _loaded(f"{self.module.__name__}.{name}")) for name in names)
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


@cache
def ladders(operation: str) -> tuple[Ladder, ...]:
    """The ladders of an operation."""
    package = _loaded(f"labkit.{operation}")
    folder = Path(package.__file__).parent
    names = sorted({path.parent.name for path in folder.glob(f"*/{STEPS}")})
    own = [Ladder(operation, "", package)] if any(folder.glob(STEPS)) else []
    return (*own, *(Ladder(operation, name, _loaded(f"{package.__name__}.{name}")) for name in names))


def _loaded(name: str) -> ModuleType:
    """The module of that name; an ImportError says which file fails, and why."""
    try:
        return import_module(name)
    except Exception as error:
        why, path = f"{type(error).__name__}: {error}", name.replace(".", "/")
        raise ImportError(f"{path} cannot be loaded ({why}): mend it, or take it away", name=name) from error


def ladder(operation: str, name: str = "") -> Ladder:
    """A ladder of an operation by its name: `ladder("gemm", "fp32")`.

    Raises
    ------
    KeyError
        There is no such ladder; the message lists those there are.
    """
    found = {ladder.name: ladder for ladder in ladders(operation)}
    if name not in found:
        raise KeyError(f"there is no ladder {name!r} of {operation}; there is {', '.join(found)}")
    return found[name]


def every_ladder() -> list[Ladder]:
    """All ladders of all operations."""
    return [ladder for operation in operations() for ladder in ladders(operation)]
