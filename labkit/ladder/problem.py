"""Problems: the sizes, operands and expected results of what a step, one kernel of an operation, computes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float64, Shaped

from labkit.arrays.addresses import has_c_order
from labkit.arrays.element_types import dtype_of
from labkit.arrays.operands import check_array, shape_text
from labkit.formats import BF16, FP32, Format

EMPTY = MappingProxyType({})


@dataclass(frozen=True)
class Expected:
    """Expected contents of an output: `value` in float64, and the largest allowed error of each element, `bound`."""

    value: Float64[np.ndarray, "..."]
    bound: Float64[np.ndarray, "..."]

    def holds(self, found: Shaped[np.ndarray, "..."]) -> bool:
        """Return whether all found values are within their bounds; NaN is right where it is expected."""
        if np.shape(found) != np.shape(self.value):
            return False
        with np.errstate(invalid="ignore"):
            same = (found == self.value) | (np.isnan(found) & np.isnan(self.value))
            return bool(((np.abs(found - self.value) <= self.bound) | same).all())


class Problem(ABC):
    """The task of a kernel (a step) for given sizes: a subclass is a frozen dataclass of the sizes.

    A subclass whose steps call `check` defines `shapes` and `axes` of the arrays, in the order of operands.

    Attributes
    ----------
    message_name
        Name of such a problem in messages.
    array_descriptions
        Names of arrays in messages, if they differ from the arrays' own names.
    float32_arrays, int32_arrays, bf16_arrays
        Arrays of one element type in every format; bfloat16 is stored as bits.
    needs_c_order
        Whether steps accept only arrays in C order.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the subclass
    message_name: ClassVar[str] = "problem"
    array_descriptions: ClassVar[Mapping[str, str]] = EMPTY
    float32_arrays: ClassVar[Sequence[str]] = ()
    int32_arrays: ClassVar[Sequence[str]] = ()
    bf16_arrays: ClassVar[Sequence[str]] = ()
    needs_c_order: ClassVar[bool] = True

    def __str__(self):
        return "x".join(map(str, self.fields.values()))

    @property
    def fields(self) -> dict[str, int]:
        """Sizes by their names, as in recorded rows."""
        return asdict(self)

    @property
    @abstractmethod
    def flops(self) -> int:
        """Floating-point operations that the problem needs; a step may execute more."""

    @abstractmethod
    def min_bytes(self, format: Format = FP32) -> int:
        """Return the least DRAM traffic in bytes: each operand moves once."""

    @abstractmethod
    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return the operands of a step: random inputs, and outputs filled so that unwritten elements show."""

    @abstractmethod
    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, Expected]:
        """Return the expected contents of each output, by its position, for operands before the step ran."""

    def compared_outputs(self, expected: dict[int, Expected]) -> dict[int, Expected]:
        """Select the expected outputs that count for the relative error."""
        return expected

    def checked_part(self, operands: tuple) -> tuple:
        """Return the operands of a smaller part of the problem, if checking the whole takes long."""
        return operands

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """Return the arguments that follow the arrays in the CUDA C++ version of a step."""
        return tuple(self.fields.values())

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of arrays by their names."""
        return {}

    @property
    def axes(self) -> dict[str, str]:
        """Letters of arrays' axes by their names."""
        return {}

    def misfit(self, supported: Mapping[str, tuple]) -> str:
        """Return why a step does not apply, in a sentence; "" if it does.

        Parameters
        ----------
        supported
            Values that the step supports, by the name of a problem's attribute.
        """
        for name, values in supported.items():
            if (value := getattr(self, name)) not in values:
                values = " or ".join(map(str, values))
                return f"this step takes {name} = {values}, and the {self.message_name} has {name} = {value}"
        return ""

    def check(self, *arrays, supported: Mapping[str, tuple] = EMPTY, dtype=np.float32) -> None:
        """Raise an error if a step does not apply to this problem, or an array does not fit the problem.

        Parameters
        ----------
        arrays
            The arrays of `shapes`, in their order.
        supported
            Values that the step supports, by the name of a problem's attribute.
        dtype
            Element type of all arrays except `float32_arrays`, `int32_arrays` and `bf16_arrays`.

        Raises
        ------
        TypeError
            An argument is not an array, or has another element type.
        ValueError
            An array has another shape, or gaps in memory; or the step does not apply.
        """
        if why := self.misfit(supported):
            raise ValueError(f"{why}: choose another step")
        for (name, shape), X in zip(self.shapes.items(), arrays, strict=True):
            check_array(name, X)
            fixed = dict.fromkeys(self.float32_arrays, np.float32) | dict.fromkeys(self.int32_arrays, np.int32)
            fixed |= dict.fromkeys(self.bf16_arrays, BF16.dtype)
            wanted = np.dtype(fixed.get(name, dtype))
            if dtype_of(X) != wanted:
                raise TypeError(f"{name} holds {X.dtype}, but this step takes {wanted}: convert it")
            title = self.array_descriptions.get(name, name)
            if tuple(X.shape) != shape:
                found, needed = map(shape_text, (X.shape, shape))
                raise ValueError(
                    f"{title} is {found}, but {self.axes[name]} of this {self.message_name} is {needed}: "
                    "give it that shape, or state other sizes"
                )
            if self.needs_c_order and not has_c_order(X):
                raise ValueError(
                    f"{title} is not in C order, and steps take neighbours at once: "
                    f"pass np.ascontiguousarray({name}), which is a copy"
                )

    def is_right(self, before: tuple, after: tuple, format: Format = FP32) -> bool:
        """Return whether a step computed the right outputs, given all operands before and after it."""
        expected = self.expected(before, format)
        outputs = {position: np.asarray(after[position]) for position in expected}
        return all(expected[position].holds(_output_format(X, format).decode(X)) for position, X in outputs.items())


def _output_format(X: Shaped[np.ndarray, "..."], format: Format) -> Format:
    """Return the format of an output: that of results, or float32 for further outputs, such as statistics."""
    return format.result if X.dtype == format.result.dtype else FP32


def relative_error(problem: Problem, expected: dict[int, Expected], after: tuple, format: Format) -> float:
    """Return the norm of the outputs' errors divided by the norm of the expected values, for a part of the problem.

    The result is NaN if an element was not written, and the norm of the errors if all values are zero.
    """
    squared_error = squared_norm = 0.0
    for position, output in problem.compared_outputs(expected).items():
        output_format = _output_format(after[position], format)
        if output_format.is_nan(after[position]).any():
            return float("nan")
        found = output_format.decode(problem.checked_part(after)[position])
        squared_error += float(np.sum((found - output.value) ** 2))
        squared_norm += float(np.sum(output.value**2))
    return float(np.sqrt(squared_error / (squared_norm or 1)))
