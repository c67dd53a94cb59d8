"""What users call: the softmax of the last axis of an array, its gradient, and both as plans."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, operand_format, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.views import reshape
from labkit.arrays.workspace import Workspace
from labkit.calls.call import call
from labkit.calls.operation import Operation, Result, calls
from labkit.formats import BF16, FP32, Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order
from labkit.softmax.problem import Backward, Forward, Rows
from labkit.softmax.row_steps import launches_of

FORMATS = FP32, BF16


class OfRows(Operation):
    """A softmax of rows without its arrays, which are all alike; a subclass has the option format."""

    of: ClassVar[type[Rows]]

    @property
    def required(self) -> tuple[str, ...]:
        return self.arrays[:-1]

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.arrays[-1:]

    def declared(self, given: Mapping[str, object]) -> "OfRows":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        first, like = self.arrays[0], given[self.arrays[0]]
        if len(like.shape) == 0:
            raise ValueError(f"{first} is a number: give an array of rows")
        format = self._format(given)
        self._problem(like)
        for name, X in given.items():
            if tuple(X.shape) != tuple(like.shape):
                found, needed = (shape_text(Y.shape) for Y in (X, like))
                raise ValueError(f"{name} is {found}, but {needed} beside {first}: change it")
            if not can_hold(X, format):
                raise TypeError(f"{first} holds {type_name(like)} and {name} {type_name(X)}: make them alike")
            in_order = is_in_c_order(tuple(X.shape), strides_of(X), dtype_of(X).itemsize)
            if not in_order and not owner_of(X).is_on_host(X):
                raise ValueError(f"{name} is not in C order, and rows are taken as they follow in memory: copy it")

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        first = self.arrays[0]
        return Result(first, tuple(given[first].shape))

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        if 0 in given[self.arrays[0]].shape:
            return []
        problem = self._problem(given[self.arrays[0]])
        arrays = tuple(reshape(given[name], problem.rows, problem.columns) for name in self.arrays)
        return launches_of(arrays, problem, self._format(given), workspace)

    def _problem(self, X) -> Rows:
        *rows, columns = X.shape
        return self.of(prod(rows) or 1, columns)  # no rows are checked as one is

    def _format(self, given) -> Format:
        first = self.arrays[0]
        return operand_format(first, given[first], self.format, FORMATS)


@dataclass(frozen=True)
class Softmax(OfRows):
    """See `softmax`."""

    format: str | Format | None = None

    of, arrays = Forward, ("x", "out")
    in_place: ClassVar = {"out": "x"}


@dataclass(frozen=True)
class SoftmaxBackward(OfRows):
    """See `softmax_backward`."""

    format: str | Format | None = None

    of, arrays = Backward, ("dy", "y", "dx")
    in_place: ClassVar = {"dx": "dy"}


@calls(Softmax)
def softmax(
    x: Shaped[np.ndarray, "*rows columns"],
    *,
    out: Shaped[np.ndarray, "*rows columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """exp(x) / sum of exp(x) along the last axis, as `torch.softmax(x, -1)` has it; no exponential overflows.

    Parameters
    ----------
    x
        An array of the device (numba's, torch's, or any with `__cuda_array_interface__`) in C order, or one of the host
        (NumPy's or torch's), which is copied there. It holds float32 or bfloat16.
    out
        Where the result goes; x itself will do. If it is None, a new array of the kind that x is.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    out. A value of minus infinity gives 0. A row of nothing else becomes NaN, as does one with a NaN or plus infinity.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not.
    ValueError
        Shapes do not fit, an array has gaps, or rows are wider than any step takes.

    Notes
    -----
    The kernels are those of `softmax.ladder("forward")`. Arithmetic is float32. The first call makes a plan, which
    later ones find again. (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.)

    Examples
    --------
    >>> y = softmax.softmax(x)
    """
    return call(Softmax, (x, out), (format,), stream)


@calls(SoftmaxBackward)
def softmax_backward(
    dy: Shaped[np.ndarray, "*rows columns"],
    y: Shaped[np.ndarray, "*rows columns"],
    *,
    dx: Shaped[np.ndarray, "*rows columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """y * (dy - sum of y * dy) along the last axis: the gradient of x, of the gradient dy of y = `softmax(x)`.

    Parameters
    ----------
    dy, y
        The gradient of y, and y; arrays as for `softmax`.
    dx
        Where the result goes; dy itself will do. If it is None, a new array.
    format, stream
        As for `softmax`.

    Returns
    -------
    dx.

    Raises
    ------
    TypeError, ValueError
        As `softmax`.

    Examples
    --------
    >>> dx = softmax.softmax_backward(dy, softmax.softmax(x))
    """
    return call(SoftmaxBackward, (dy, y, dx), (format,), stream)
