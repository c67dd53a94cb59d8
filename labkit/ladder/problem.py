"""What a step computes: sizes, operands, and the results that an oracle expects."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float64, Shaped

from labkit.arrays.addresses import lies_in_order
from labkit.arrays.element_types import dtype_of
from labkit.arrays.operands import check_array, sides
from labkit.formats import BF16, FP32, Format

NONE = MappingProxyType({})


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

    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the subclass
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
