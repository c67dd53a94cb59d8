"""The call `batch_norm_backward`, and its operation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import run_operation
from labkit.calls.operation import call_of
from labkit.formats import Format
from labkit.norm import backward
from labkit.norm.backward import BatchBackward
from labkit.norm.images import Layout
from labkit.norm.interface.channels import ImageOperation


@dataclass(frozen=True)
class BatchNormBackward(ImageOperation):
    """Operation of the call `batch_norm_backward`, which describes the options."""

    eps: float = 1e-5
    relu: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None

    arrays, image_arrays = backward.ARRAYS, ("dy", "x", "dx")
    outputs, required, in_place = ("dx", "dweight", "dbias"), ("dy", "x", "mean", "variance"), {"dx": "dy"}

    def make_problem(self, *sizes) -> BatchBackward:
        return BatchBackward(*sizes, self.eps)


@call_of(BatchNormBackward)
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
    """Compute the gradients of images, weights and biases of `batch_norm` in training, for a gradient dy of y.

    Parameters
    ----------
    dy
        Gradient of y.
    x, weight, bias
        The arguments of `batch_norm`.
    mean, variance
        Statistics of the batch, as `batch_norm` stores them.
    dx, dweight, dbias
        Output arrays; None makes new ones. dx may be dy itself.
    eps, relu, layout, format, stream
        The options of `batch_norm`, whose errors are raised here too. With ReLU, values from 0 down add nothing to dx.

    Returns
    -------
    dx, dweight and dbias.

    Examples
    --------
    >>> y = norm.batch_norm(x, weight, bias, mean=mean, variance=variance, relu=True)
    >>> dx, dweight, dbias = norm.batch_norm_backward(dy, x, weight, bias, mean, variance, relu=True)
    """
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    return run_operation(BatchNormBackward, arrays, (eps, relu, layout, format), stream)
