"""The gradients of batch norm in training, of images as they lie."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import call
from labkit.calls.operation import calls
from labkit.formats import Format
from labkit.norm import backward
from labkit.norm.backward import BatchBackward
from labkit.norm.images import Layout
from labkit.norm.interface.channels import OfChannels


@dataclass(frozen=True)
class BatchNormBackward(OfChannels):
    """The gradients of a batch norm, without their arrays; for the options see `batch_norm_backward`."""

    eps: float = 1e-5
    relu: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None

    arrays, images = backward.ARRAYS, ("dy", "x", "dx")
    outputs, required, in_place = ("dx", "dweight", "dbias"), ("dy", "x", "mean", "variance"), {"dx": "dy"}

    def problem_of(self, *sizes) -> BatchBackward:
        return BatchBackward(*sizes, self.eps)


@calls(BatchNormBackward)
def batch_norm_backward(
    dy: Shaped[np.ndarray, "N C *pixels"],
    x: Shaped[np.ndarray, "N C *pixels"],
    weight: Float32[np.ndarray, " C"] | None,
    bias: Float32[np.ndarray, " C"] | None,
    mean: Float32[np.ndarray, " C"],
    variance: Float32[np.ndarray, " C"],
    *,
    dx: Shaped[np.ndarray, "N C *pixels"] | None = None,
    dweight: Float32[np.ndarray, " C"] | None = None,
    dbias: Float32[np.ndarray, " C"] | None = None,
    eps: float = 1e-5,
    relu: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    stream=None,
) -> tuple[Shaped[np.ndarray, "N C *pixels"], Float32[np.ndarray, " C"], Float32[np.ndarray, " C"]]:
    """The gradients of images, weights and biases, of the gradient dy of what `batch_norm` gave in training.

    Parameters
    ----------
    dy
        The gradient of y.
    x, weight, bias
        What `batch_norm` was given; see there.
    mean, variance
        The statistics of the batch, as `batch_norm` gives them.
    dx, dweight, dbias
        Where the gradients go; new arrays if they are None. dx may be dy itself.
    eps, relu, layout, format, stream
        As `batch_norm` was given them. Where ReLU cut y, and where y was 0, no gradient comes back.

    Returns
    -------
    dx, dweight and dbias.

    Raises
    ------
    TypeError, ValueError
        As `batch_norm`.

    Examples
    --------
    >>> y = norm.batch_norm(x, weight, bias, mean=mean, variance=variance, relu=True)
    >>> dx, dweight, dbias = norm.batch_norm_backward(dy, x, weight, bias, mean, variance, relu=True)
    """
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    return call(BatchNormBackward, arrays, (eps, relu, layout, format), stream)
