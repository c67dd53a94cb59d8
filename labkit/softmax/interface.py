"""The calls `softmax` and `softmax_backward`, and their operations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.checks import check_arrays, check_c_order
from labkit.arrays.operands import operand_format
from labkit.arrays.views import reshape
from labkit.arrays.workspace import Workspace
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch
from labkit.softmax.problem import Backward, Forward, RowProblem
from labkit.softmax.row_steps import choose_step

FORMATS = FP32, BF16, FP16


class RowOperation(Operation):
    """A softmax of rows, or its gradient, on arrays of one shape and type; a subclass has the option format."""

    problem_type: ClassVar[type[RowProblem]]

    @property
    def required(self) -> tuple[str, ...]:
        return self.arrays[:-1]

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.arrays[-1:]

    def with_format(self, operands: Mapping[str, object]) -> "RowOperation":
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        first, shape = self.arrays[0], tuple(operands[self.arrays[0]].shape)
        if len(shape) == 0:
            raise ValueError(f"{first} is a number: give an array of rows")
        format = self._format(operands)
        self._problem(operands[first])
        check_arrays(operands, dict.fromkeys(operands, shape), format, first=first, context=f"beside {first}")
        check_c_order(operands)

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        return Result(like=self.arrays[0], shape=tuple(operands[self.arrays[0]].shape))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        if 0 in operands[self.arrays[0]].shape:
            return []
        problem = self._problem(operands[self.arrays[0]])
        arrays = tuple(reshape(operands[name], problem.rows, problem.columns) for name in self.arrays)
        return choose_step(arrays, problem, self._format(operands), workspace).launches

    def _problem(self, X) -> RowProblem:
        *rows, columns = X.shape
        return self.problem_type(prod(rows) or 1, columns)  # a call on no rows has the checks of one row

    def _format(self, operands) -> Format:
        first = self.arrays[0]
        return operand_format(first, operands[first], self.format, FORMATS)


@dataclass(frozen=True)
class Softmax(RowOperation):
    """Operation of the call `softmax`."""

    format: str | Format | None = None

    problem_type, arrays = Forward, ("x", "out")
    in_place: ClassVar = {"out": "x"}  # out may overwrite x


@dataclass(frozen=True)
class SoftmaxBackward(RowOperation):
    """Operation of the call `softmax_backward`."""

    format: str | Format | None = None

    problem_type, arrays = Backward, ("dy", "y", "dx")
    in_place: ClassVar = {"dx": "dy"}  # dx may overwrite dy


@call_of(Softmax)
def softmax(
    x: Shaped[np.ndarray, "*rows columns"],
    *,
    out: Shaped[np.ndarray, "*rows columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """Compute exp(x) / sum of exp(x) along the last axis, as `torch.softmax(x, -1)`; no exponential overflows.

    Parameters
    ----------
    x
        Array of float32, bfloat16 or float16: on the device (of numba, torch, or with `__cuda_array_interface__`) in C
        order, or on the host (of NumPy or torch), which is copied to the device.
    out
        Output array; it may be x itself. None makes a new array of x's kind.
    format
        Format of bits: "bfloat16" (uint16). None means the format of the arrays' type.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of torch
        or CuPy arrays, else the default stream.

    Returns
    -------
    out. A value of minus infinity gives 0. A row of only such values becomes NaN, and so does a row with a NaN or plus
    infinity.

    Raises
    ------
    TypeError
        An operand is no array, or has the wrong type.
    ValueError
        Shapes do not fit, an array has gaps, or rows are wider than any step accepts.

    Notes
    -----
    The kernels are those of `softmax.ladder("forward")`. Arithmetic is float32. The first call makes a plan, which
    later calls reuse. (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.)

    Examples
    --------
    >>> y = softmax.softmax(x)
    """
    return run_operation(Softmax, (x, out), (format,), stream)


@call_of(SoftmaxBackward)
def softmax_backward(
    dy: Shaped[np.ndarray, "*rows columns"],
    y: Shaped[np.ndarray, "*rows columns"],
    *,
    dx: Shaped[np.ndarray, "*rows columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """Compute y * (dy - sum of y * dy) along the last axis: the gradient of x for a gradient dy of y = `softmax(x)`.

    Parameters
    ----------
    dy, y
        Gradient of y, and y; for their kinds see `softmax`.
    dx
        Output array; it may be dy itself. None makes a new array.
    format, stream
        The options of `softmax`, whose errors are raised here too.

    Examples
    --------
    >>> dx = softmax.softmax_backward(dy, softmax.softmax(x))
    """
    return run_operation(SoftmaxBackward, (dy, y, dx), (format,), stream)
