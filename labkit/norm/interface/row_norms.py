"""The calls `layer_norm` and `rms_norm`, and their operations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.arrays.checks import check_arrays, check_c_order
from labkit.arrays.operands import operand_format, shape_text
from labkit.arrays.views import flatten, reshape
from labkit.arrays.workspace import Workspace
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.formats import Format
from labkit.ladder import Launch
from labkit.norm.interface.channels import DEFAULTS, FORMATS, check_number
from labkit.norm.interface.choice import choose_step
from labkit.norm.interface.fill import fill_launch
from labkit.norm.rows.problem import ARRAYS, Kind, RowForward, RowProblem

ROW_ARRAYS = "mean", "rstd"
COLUMN_ARRAYS = "weight", "bias"


class RowOperation(Operation):
    """A norm of rows; a subclass has the options eps and format."""

    kind: ClassVar[Kind]
    matrix_arrays, column_arrays = ("x", "y"), COLUMN_ARRAYS
    problem_arrays = ARRAYS  # in the order of a step's parameters; `arrays` are those of the call
    outputs, required, in_place = ("y",), ("x",), {"y": "x"}  # y may overwrite x
    written = ("y", *ROW_ARRAYS)

    def __post_init__(self):
        check_number("eps", self.eps, condition=" that is not below 0", least=0)

    def with_format(self, operands: Mapping[str, object]) -> "RowOperation":
        return replace(self, format=self._format(operands["x"]))

    def check(self, operands: Mapping[str, object]) -> None:
        x = operands["x"]
        if len(x.shape) == 0:
            raise ValueError("x is a number: give an array of rows")
        format, (rows, row) = self._format(x), _split_shape(operands)
        self._problem(rows, row)
        shapes = dict.fromkeys(operands, (*rows, *row))
        shapes |= dict.fromkeys(self.column_arrays, row) | dict.fromkeys(ROW_ARRAYS, rows)
        vectors = [name for name in operands if name not in self.matrix_arrays]
        check_arrays(
            operands, shapes, format, first="x", float32_names=vectors, context=f"beside x of {shape_text(x.shape)}"
        )
        check_c_order(operands)

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        rows, row = _split_shape(operands)
        if name in self.column_arrays:
            return Result(like="x", shape=row, type_name="float32")
        return Result(like="x", shape=(*rows, *row))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        rows, row = _split_shape(operands)
        if 0 in rows:  # a sum over no rows is zero
            return [fill_launch(flatten(operands[name]), 0.0) for name in self.column_arrays if name in self.written]
        problem, fills, arrays = self._problem(rows, row), [], []
        for name in self.problem_arrays:
            shape = problem.shapes.get(name)
            if shape is None:  # RMS norm has no such array
                arrays.append(None)
            elif name in operands:
                arrays.append(reshape(operands[name], *shape))
            else:
                arrays.append(workspace.array(f"instead of {name}", shape, np.float32))
                if name in DEFAULTS:
                    fills.append(fill_launch(arrays[-1], DEFAULTS[name]))
        return fills + choose_step(tuple(arrays), problem, self._format(operands["x"]), workspace).launches

    def make_problem(self, rows: int, columns: int) -> RowProblem:
        """Return the problem of a number of rows and columns."""
        return RowForward(rows, columns, self.kind, self.eps)

    def _problem(self, rows, row) -> RowProblem:
        return self.make_problem(prod(rows) or 1, prod(row))  # a call on no rows has the checks of one row

    def _format(self, x) -> Format:
        return operand_format("x", x, self.format, FORMATS)


@dataclass(frozen=True)
class LayerNorm(RowOperation):
    """Operation of the call `layer_norm`."""

    eps: float = 1e-5
    format: str | Format | None = None

    kind, arrays = "layer", ARRAYS


@dataclass(frozen=True)
class RMSNorm(RowOperation):
    """Operation of the call `rms_norm`."""

    eps: float = 1e-5
    format: str | Format | None = None

    kind, arrays = "rms", ("x", "weight", "y", "rstd")


@call_of(LayerNorm)
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
    """Compute y = (x - mean) / sqrt(variance + eps) * weight + bias per row, as `torch.nn.functional.layer_norm`.

    Parameters
    ----------
    x
        Array of float32, bfloat16 or float16: on the device (of numba, torch, or with `__cuda_array_interface__`) in C
        order, or on the host (of NumPy or torch), which is copied to the device.
    weight, bias
        Factor and summand per value of a row; None means 1 and 0. They have the shape of a row, the last axes of x; if
        both are None, a row is the last axis.
    y
        Output array; it may be x itself. None makes a new array of x's kind.
    mean, rstd
        Output arrays for the mean of each row and 1 / sqrt(variance + eps); None stores none.
    eps
        Summand of the variance.
    format
        Format of bits: "bfloat16" (uint16). None means the format of the arrays' type.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of torch
        or CuPy arrays, else the default stream.

    Returns
    -------
    y. Statistics are float32, and accurate even if a mean is many spreads from zero.

    Raises
    ------
    TypeError
        An operand is no array, or has the wrong type.
    ValueError
        Shapes do not fit, arrays have gaps, or an output shares memory with another array.

    Notes
    -----
    The kernels are those of `norm.ladder("rows")`. The first call makes a plan, which later calls reuse.
    (Ba, Kiros and Hinton, Layer Normalization, 2016.)

    Examples
    --------
    >>> y = norm.layer_norm(x, weight, bias)
    """
    return run_operation(LayerNorm, (x, weight, bias, y, mean, rstd), (eps, format), stream)


@call_of(RMSNorm)
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
    """Compute y = x / sqrt(mean square + eps) * weight for each row; for parameters see `layer_norm`.

    (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.)

    Examples
    --------
    >>> y = norm.rms_norm(x, weight, eps=1e-6)
    """
    return run_operation(RMSNorm, (x, weight, y, rstd), (eps, format), stream)


def _split_shape(operands) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the shape of x into the axes that count rows and the axes of one row."""
    shape = tuple(operands["x"].shape)
    weight = next((operands[name] for name in COLUMN_ARRAYS if name in operands), None)
    axes = 1 if weight is None else min(max(len(weight.shape), 1), len(shape))
    return shape[: len(shape) - axes], shape[len(shape) - axes :]
