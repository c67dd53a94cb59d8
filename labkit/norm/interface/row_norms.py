"""Layer norm and RMS norm of the last axes of arrays, by the step of the ladder that suits them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, operand_format, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.views import flatten, reshape
from labkit.arrays.workspace import Workspace
from labkit.calls.call import call
from labkit.calls.operation import Operation, Result, calls
from labkit.formats import Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order
from labkit.norm.interface.channels import FORMATS, INSTEAD, check_number
from labkit.norm.interface.choice import launches_of
from labkit.norm.interface.filled import filled
from labkit.norm.rows.problem import ARRAYS, Kind, RowForward, Rows

OF_ROWS = "mean", "rstd"
OF_COLUMNS = "weight", "bias"


class OfRows(Operation):
    """A norm of rows without its arrays; a subclass has the options eps and format."""

    kind: ClassVar[Kind]
    matrices, columns, names = ("x", "y"), OF_COLUMNS, ARRAYS  # those of the problem, in its order
    outputs, required, in_place = ("y",), ("x",), {"y": "x"}
    written = ("y", *OF_ROWS)

    def __post_init__(self):
        check_number("eps", self.eps, " that is not below 0", least=0)

    def declared(self, given: Mapping[str, object]) -> "OfRows":
        return replace(self, format=self._format(given["x"]))

    def check(self, given: Mapping[str, object]) -> None:
        x = given["x"]
        if len(x.shape) == 0:
            raise ValueError("x is a number: give an array of rows")
        format, (rows, row) = self._format(x), _split(given)
        self._problem(rows, row)
        for name, X in given.items():
            wanted = row if name in self.columns else rows if name in OF_ROWS else (*rows, *row)
            if tuple(X.shape) != wanted:
                found, needed = map(shape_text, (X.shape, wanted))
                raise ValueError(f"{name} is {found}, but {needed} beside x of {shape_text(x.shape)}: change it")
            if name in self.matrices and not can_hold(X, format):
                raise TypeError(f"x holds {type_name(x)} and {name} {type_name(X)}: make them alike")
            if name not in self.matrices and dtype_of(X) != np.float32:
                raise TypeError(f"{name} holds {type_name(X)}, but beside x of {format} it is float32: convert it")
            in_order = is_in_c_order(tuple(X.shape), strides_of(X), dtype_of(X).itemsize)
            if not in_order and not owner_of(X).is_on_host(X):
                raise ValueError(f"{name} is not in C order, and rows are taken as they follow in memory: copy it")

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        rows, row = _split(given)
        if name in self.columns:
            return Result("x", row, "float32")
        return Result("x", (*rows, *row))

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        rows, row = _split(given)
        if 0 in rows:  # of none, all sums are zero
            return [filled(flatten(given[name]), 0.0) for name in self.columns if name in self.written]
        problem, made, arrays = self._problem(rows, row), [], []
        for name in self.names:
            shape = problem.shapes.get(name)
            if shape is None:  # RMS norm has no such array
                arrays.append(None)
            elif name in given:
                arrays.append(reshape(given[name], *shape))
            else:
                arrays.append(workspace.array(f"instead of {name}", shape, np.float32))
                if name in INSTEAD:
                    made.append(filled(arrays[-1], INSTEAD[name]))
        return made + launches_of(tuple(arrays), problem, self._format(given["x"]), workspace)

    def problem_of(self, rows: int, columns: int) -> Rows:
        """The problem of so many rows of so many values."""
        return RowForward(rows, columns, self.kind, self.eps)

    def _problem(self, rows, row) -> Rows:
        return self.problem_of(prod(rows) or 1, prod(row))  # no rows are checked as one is

    def _format(self, x) -> Format:
        return operand_format("x", x, self.format, FORMATS)


@dataclass(frozen=True)
class LayerNorm(OfRows):
    """See `layer_norm`."""

    eps: float = 1e-5
    format: str | Format | None = None

    kind, arrays = "layer", ARRAYS


@dataclass(frozen=True)
class RMSNorm(OfRows):
    """See `rms_norm`."""

    eps: float = 1e-5
    format: str | Format | None = None

    kind, arrays = "rms", ("x", "weight", "y", "rstd")


@calls(LayerNorm)
def layer_norm(
    x: Shaped[np.ndarray, "*rows columns"],
    weight: Float32[np.ndarray, " columns"] | None = None,
    bias: Float32[np.ndarray, " columns"] | None = None,
    *,
    y: Shaped[np.ndarray, "*rows columns"] | None = None,
    mean: Float32[np.ndarray, "*rows"] | None = None,
    rstd: Float32[np.ndarray, "*rows"] | None = None,
    eps: float = 1e-5,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """y = (x - mean) / sqrt(variance + eps) * weight + bias for each row, as `torch.nn.functional.layer_norm` has it.

    Parameters
    ----------
    x
        An array of the device (numba's, torch's, or any with `__cuda_array_interface__`) in C order, or one of the host
        (NumPy's or torch's), which is copied there. It holds float32 or bfloat16.
    weight, bias
        A factor and a summand for each value of a row; None for 1 and 0. A row is as many of the last axes of x as
        these have, or the last one if there are none.
    y
        Where the result goes; x itself will do. If it is None, a new array of the kind that x is.
    mean, rstd
        Where the mean of each row goes, and one over the root of its variance and eps, if they are wanted.
    eps
        What is added to the variance.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    y. Statistics are float32, and right where a mean is many spreads from zero.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not.
    ValueError
        Shapes do not fit, arrays have gaps, or one that is written shares memory with another one.

    Notes
    -----
    The kernels are those of `norm.ladder("rows")`. The first call makes a plan, which later ones find again.
    (Ba, Kiros and Hinton, Layer Normalization, 2016.)

    Examples
    --------
    >>> y = norm.layer_norm(x, weight, bias)
    """
    return call(LayerNorm, (x, weight, bias, y, mean, rstd), (eps, format), stream)


@calls(RMSNorm)
def rms_norm(
    x: Shaped[np.ndarray, "*rows columns"],
    weight: Float32[np.ndarray, " columns"] | None = None,
    *,
    y: Shaped[np.ndarray, "*rows columns"] | None = None,
    rstd: Float32[np.ndarray, "*rows"] | None = None,
    eps: float = 1e-5,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """y = x / sqrt(mean square + eps) * weight for each row; all else is as for `layer_norm`.

    (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.)

    Examples
    --------
    >>> y = norm.rms_norm(x, weight, eps=1e-6)
    """
    return call(RMSNorm, (x, weight, y, rstd), (eps, format), stream)


def _split(given) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of all rows, and that of one."""
    shape = tuple(given["x"].shape)
    beside = next((given[name] for name in OF_COLUMNS if name in given), None)
    axes = 1 if beside is None else min(max(len(beside.shape), 1), len(shape))
    return shape[: len(shape) - axes], shape[len(shape) - axes :]
