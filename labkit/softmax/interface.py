"""What users call: the softmax of the last axis of an array, its gradient, and both as plans."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.operands import dtype_of, format_held, sides, strides_of, type_name
from labkit.arrays.views import reshaped
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP32, Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order
from labkit.norm.interface.operation import Operation, called, planned_call
from labkit.planned import Plan
from labkit.softmax.problem import Backward, Forward, Rows
from labkit.softmax.row_steps import launches_of

FORMATS = FP32, BF16


def softmax(
    x: Shaped[np.ndarray, "*rows columns"],
    out: Shaped[np.ndarray, "*rows columns"] | None = None,
    *,
    format: str | Format | None = None,
    stream=0,
) -> Shaped[np.ndarray, "*rows columns"]:
    """exp(x) / sum of exp(x) along the last axis, as `torch.softmax(x, -1)` has it; no exponential overflows.

    Parameters
    ----------
    x
        An array of the device (numba's, torch's, or any with `__cuda_array_interface__`) in C order, or a NumPy array,
        which is copied there. It holds float32 or bfloat16.
    out
        Where the result goes; x itself will do. If it is None, a new array of the kind that x is.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`. Pass out where it is captured into a graph.

    Returns
    -------
    out. A value of minus infinity gives 0. A row of nothing else becomes NaN, as does one with a NaN or plus infinity.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not, or one is the host's and the other the device's.
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
    return called(Softmax(format), {"x": x, "out": out}, stream)


def softmax_backward(
    dy: Shaped[np.ndarray, "*rows columns"],
    y: Shaped[np.ndarray, "*rows columns"],
    dx: Shaped[np.ndarray, "*rows columns"] | None = None,
    *,
    format: str | Format | None = None,
    stream=0,
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
    return called(SoftmaxBackward(format), {"dy": dy, "y": y, "dx": dx}, stream)


def plan(call, *arrays, **options) -> Plan:
    """A call worked out once, to be run many times by calling the plan: `plan()`, or `plan(x, out)` for other arrays.

    A plan costs the host a few microseconds a run, allocates nothing then, and can be captured in a CUDA graph on any
    stream. Its arrays are of the device.

    Parameters
    ----------
    call
        `softmax.softmax` or `softmax.softmax_backward`.
    arrays, options
        Those of the call. The result must be among them.

    Returns
    -------
    The plan. To run for other arrays it is given all of them, in the order of the call.

    Raises
    ------
    TypeError, ValueError
        As the call does.

    Examples
    --------
    >>> plan = softmax.plan(softmax.softmax, x, out)
    >>> plan()
    """
    return planned_call(call, OPERATIONS, arrays, options)


class OfRows(Operation):
    """A softmax of rows without its arrays, which are all alike; a subclass has the option format."""

    of: ClassVar[type[Rows]]

    @property
    def needed(self) -> tuple[str, ...]:
        return self.arrays[:-1]

    @property
    def written(self) -> tuple[str, ...]:
        return self.arrays[-1:]

    def declared(self, given: Mapping[str, object]) -> "OfRows":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        first, like = self.arrays[0], given[self.arrays[0]]
        if len(like.shape) == 0:
            raise ValueError(f"{first} is a number: give an array of rows")
        self._format(given)
        self._problem(like)
        for name, X in given.items():
            if tuple(X.shape) != tuple(like.shape):
                found, needed = (sides(Y.shape) for Y in (X, like))
                raise ValueError(f"{name} is {found}, but {needed} beside {first}: change it")
            if type_name(X) != type_name(like):
                raise TypeError(f"{first} holds {type_name(like)} and {name} {type_name(X)}: make them alike")
            if not isinstance(X, np.ndarray) and not is_in_c_order(tuple(X.shape), strides_of(X), dtype_of(X).itemsize):
                raise ValueError(f"{name} is not in C order, and rows are taken as they follow in memory: copy it")

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem = self._problem(given[self.arrays[0]])
        arrays = tuple(reshaped(given[name], problem.rows, problem.columns) for name in self.arrays)
        return launches_of(arrays, problem, self._format(given), workspace)

    def _problem(self, X) -> Rows:
        *rows, columns = X.shape
        return self.of(prod(rows), columns)

    def _format(self, given) -> Format:
        first = self.arrays[0]
        return format_held(first, given[first], self.format, FORMATS)


@dataclass(frozen=True)
class Softmax(OfRows):
    """See `softmax`."""

    format: str | Format | None = None

    of, arrays = Forward, ("x", "out")
    results: ClassVar = {"out": "x"}
    in_place: ClassVar = {"out": "x"}


@dataclass(frozen=True)
class SoftmaxBackward(OfRows):
    """See `softmax_backward`."""

    format: str | Format | None = None

    of, arrays = Backward, ("dy", "y", "dx")
    results: ClassVar = {"dx": "dy"}
    in_place: ClassVar = {"dx": "dy"}


OPERATIONS = {softmax: Softmax, softmax_backward: SoftmaxBackward}
