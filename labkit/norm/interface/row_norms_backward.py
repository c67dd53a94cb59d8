"""The gradients of layer norm and RMS norm."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import call
from labkit.calls.operation import calls
from labkit.formats import Format
from labkit.norm.interface.row_norms import OfRows
from labkit.norm.rows_backward.problem import ARRAYS, RowBackward


class OfGradients(OfRows):
    """The gradients of a norm of rows, without their arrays; a subclass has the option format."""

    eps = 1e-5  # which rstd has in it
    matrices, columns, names = ("dy", "x", "dx"), ("weight", "dweight", "dbias"), ARRAYS
    in_place: ClassVar = {}

    def problem_of(self, rows: int, columns: int) -> RowBackward:
        return RowBackward(rows, columns, self.kind)


@dataclass(frozen=True)
class LayerNormBackward(OfGradients):
    """See `layer_norm_backward`."""

    format: str | Format | None = None

    kind, arrays = "layer", ARRAYS
    outputs = written = "dx", "dweight", "dbias"
    required = "dy", "x", "weight", "mean", "rstd"


@dataclass(frozen=True)
class RMSNormBackward(OfGradients):
    """See `rms_norm_backward`."""

    format: str | Format | None = None

    kind, arrays = "rms", ("dy", "x", "weight", "rstd", "dx", "dweight")
    outputs = written = "dx", "dweight"
    required = "dy", "x", "weight", "rstd"


@calls(LayerNormBackward)
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
    """The gradients of x, weights and biases, of the gradient dy of what `layer_norm` gave.

    Parameters
    ----------
    dy
        The gradient of y.
    x, weight
        What `layer_norm` was given; see there.
    mean, rstd
        The statistics of the rows, as `layer_norm` gives them.
    dx, dweight, dbias
        Where the gradients go; new arrays if they are None.
    format, stream
        As for `layer_norm`.

    Returns
    -------
    dx, dweight and dbias.

    Raises
    ------
    TypeError, ValueError
        As `layer_norm`.

    Examples
    --------
    >>> y = norm.layer_norm(x, weight, bias, mean=mean, rstd=rstd)
    >>> dx, dweight, dbias = norm.layer_norm_backward(dy, x, weight, mean, rstd)
    """
    return call(LayerNormBackward, (dy, x, weight, mean, rstd, dx, dweight, dbias), (format,), stream)


@calls(RMSNormBackward)
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
    """The gradients dx and dweight of `rms_norm`; all else is as for `layer_norm_backward`.

    Examples
    --------
    >>> dx, dweight = norm.rms_norm_backward(dy, x, weight, rstd)
    """
    return call(RMSNormBackward, (dy, x, weight, rstd, dx, dweight), (format,), stream)
