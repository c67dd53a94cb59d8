"""The calls `layer_norm_backward` and `rms_norm_backward`, and their operations."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import run_operation
from labkit.calls.operation import call_of
from labkit.formats import Format
from labkit.norm.interface.row_norms import RowOperation
from labkit.norm.rows_backward.problem import ARRAYS, RowBackward


class RowGradientOperation(RowOperation):
    """The gradients of a norm of rows; a subclass has the option format."""

    eps = 1e-5  # not used: rstd includes it
    matrix_arrays, column_arrays, problem_arrays = ("dy", "x", "dx"), ("weight", "dweight", "dbias"), ARRAYS
    in_place: ClassVar = {}

    def make_problem(self, rows: int, columns: int) -> RowBackward:
        return RowBackward(rows, columns, self.kind)


@dataclass(frozen=True)
class LayerNormBackward(RowGradientOperation):
    """Operation of the call `layer_norm_backward`."""

    format: str | Format | None = None

    kind, arrays = "layer", ARRAYS
    outputs = written = "dx", "dweight", "dbias"
    required = "dy", "x", "weight", "mean", "rstd"


@dataclass(frozen=True)
class RMSNormBackward(RowGradientOperation):
    """Operation of the call `rms_norm_backward`."""

    format: str | Format | None = None

    kind, arrays = "rms", ("dy", "x", "weight", "rstd", "dx", "dweight")
    outputs = written = "dx", "dweight"
    required = "dy", "x", "weight", "rstd"


@call_of(LayerNormBackward)
def layer_norm_backward(
    dy: Shaped[np.ndarray, "*rows columns"],
    x: Shaped[np.ndarray, "*rows columns"],
    weight: Float32[np.ndarray, " columns"],
    mean: Float32[np.ndarray, "*rows"],
    rstd: Float32[np.ndarray, "*rows"],
    *,
    dx: Shaped[np.ndarray, "*rows columns"] | None = None,
    dweight: Float32[np.ndarray, " columns"] | None = None,
    dbias: Float32[np.ndarray, " columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> tuple[Shaped[np.ndarray, "*rows columns"], Float32[np.ndarray, " columns"], Float32[np.ndarray, " columns"]]:
    """Compute the gradients of x, weights and biases of `layer_norm`, for a gradient dy of y.

    Parameters
    ----------
    dy
        Gradient of y.
    x, weight
        The arguments of `layer_norm`.
    mean, rstd
        Statistics of the rows, as `layer_norm` stores them.
    dx, dweight, dbias
        Output arrays; None makes new ones.
    format, stream
        The options of `layer_norm`, whose errors are raised here too.

    Returns
    -------
    dx, dweight and dbias.

    Examples
    --------
    >>> y = norm.layer_norm(x, weight, bias, mean=mean, rstd=rstd)
    >>> dx, dweight, dbias = norm.layer_norm_backward(dy, x, weight, mean, rstd)
    """
    return run_operation(LayerNormBackward, (dy, x, weight, mean, rstd, dx, dweight, dbias), (format,), stream)


@call_of(RMSNormBackward)
def rms_norm_backward(
    dy: Shaped[np.ndarray, "*rows columns"],
    x: Shaped[np.ndarray, "*rows columns"],
    weight: Float32[np.ndarray, " columns"],
    rstd: Float32[np.ndarray, "*rows"],
    *,
    dx: Shaped[np.ndarray, "*rows columns"] | None = None,
    dweight: Float32[np.ndarray, " columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> tuple[Shaped[np.ndarray, "*rows columns"], Float32[np.ndarray, " columns"]]:
    """Compute dx and dweight of `rms_norm`; for parameters see `layer_norm_backward`.

    Examples
    --------
    >>> dx, dweight = norm.rms_norm_backward(dy, x, weight, rstd)
    """
    return run_operation(RMSNormBackward, (dy, x, weight, rstd, dx, dweight), (format,), stream)
