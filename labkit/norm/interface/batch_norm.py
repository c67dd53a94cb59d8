"""Batch norm of images as they lie, in training and in inference, by the step of the ladders that suits them."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import call
from labkit.calls.operation import calls
from labkit.formats import Format
from labkit.norm import problem
from labkit.norm.images import Layout
from labkit.norm.inference import BatchInference
from labkit.norm.interface.channels import OfChannels, check_number, check_truth
from labkit.norm.problem import BatchForward

RUNNING = "running_mean", "running_variance"
MEASURED = "mean", "variance"


@dataclass(frozen=True)
class BatchNorm(OfChannels):
    """A batch norm without its arrays; for the options see `batch_norm`."""

    training: bool = True
    momentum: float | None = 0.1
    batches: int | None = None
    eps: float = 1e-5
    relu: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None

    arrays, images = problem.ARRAYS, ("x", "y")
    outputs, required, in_place = ("y",), ("x",), {"y": "x"}

    def __post_init__(self):
        super().__post_init__()
        check_truth("training", self.training)
        if self.momentum is not None:
            check_number("momentum", self.momentum, ", or None for an average of all batches")
        if self.batches is not None and not (_is_whole(self.batches) and self.batches >= 0):
            raise ValueError(f"batches is {self.batches!r}: give how many there were before this one, 0 or more")
        if self.training and self.momentum is None and self.batches is None:
            raise ValueError(
                "momentum is None, which takes the average of all batches: say how many there were before this one, "
                "as batches"
            )

    @property
    def written(self) -> tuple[str, ...]:
        return ("y", *MEASURED, *RUNNING) if self.training else ("y",)

    @property
    def read(self) -> tuple[str, ...]:
        return RUNNING

    @property
    def varies(self) -> str:
        if self.training and self.momentum is None:
            return "momentum is None, which counts each batch otherwise, and a plan counts all alike: give a number"
        return ""

    def problem_of(self, *sizes) -> BatchForward | BatchInference:
        if self.training:
            return BatchForward(*sizes, self.momentum, self.batches or 0, self.eps)
        return BatchInference(*sizes, self.eps)

    def check(self, given: Mapping[str, object]) -> None:
        super().check(given)
        running = [name for name in RUNNING if name in given]
        if len(running) == 1:
            raise TypeError(f"{running[0]} stands alone: give both running statistics, or none")
        if self.training:
            return
        if not running:
            raise TypeError("running_mean and running_variance are None, and inference normalises by them: give both")
        for name in MEASURED:
            if name in given:
                raise TypeError(f"{name} is not measured in inference: leave it out, or say training=True")


@calls(BatchNorm)
def batch_norm(
    x: Shaped[np.ndarray, "N C *pixels"],
    weight: Float32[np.ndarray, " C"] | None = None,
    bias: Float32[np.ndarray, " C"] | None = None,
    *,
    y: Shaped[np.ndarray, "N C *pixels"] | None = None,
    running_mean: Float32[np.ndarray, " C"] | None = None,
    running_variance: Float32[np.ndarray, " C"] | None = None,
    mean: Float32[np.ndarray, " C"] | None = None,
    variance: Float32[np.ndarray, " C"] | None = None,
    training: bool = True,
    momentum: float | None = 0.1,
    batches: int | None = None,
    eps: float = 1e-5,
    relu: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "N C *pixels"]:
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    In training the mean and the variance are those of the batch, and the running statistics move towards them; in
    inference they are the running statistics. What is computed and kept is what
    `torch.nn.functional.batch_norm` computes and keeps.

    Parameters
    ----------
    x
        Images N x C x pixels ("NCHW") or N x pixels x C ("NHWC"), of any number of axes of pixels: an array of the
        device (numba's, torch's, or any with `__cuda_array_interface__`), or one of the host (NumPy's or torch's),
        which is copied there. It holds float32 or bfloat16. On the device its elements follow one another without gaps,
        channel after channel or pixel after pixel, whatever the order of its axes is: a tensor of torch in
        channels_last is NCHW.
    weight, bias
        A factor and a summand for each channel; None for 1 and 0.
    y
        Where the result goes, in the order of x; x itself will do. If it is None, a new array of the kind that x is.
    running_mean, running_variance
        The running statistics: moved in training, if they are there; read in inference. The variance is the unbiased
        one, divided by one less than there are values.
    mean, variance
        Where the statistics of the batch go, if they are wanted; the variance is divided by the number of values.
    training
        Whether the statistics are those of the batch.
    momentum, batches
        How much the batch counts in the running statistics; or None, for an average of all batches, and how many there
        were before this one.
    eps
        What is added to the variance.
    relu
        Whether what is below zero becomes zero; a NaN stays one.
    layout
        The order of the axes of x and y.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    y. Statistics are float32, and right where a mean is many spreads from zero; the same call gives the same bits each
    time.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not.
    ValueError
        Shapes do not fit, a channel has a single value in training, arrays have gaps, or one that is written shares
        memory with another one.

    Notes
    -----
    The kernels are those of `norm.ladder("batch")`, "channels_last" and "batch_inference"; which of them, is said by
    `labkit.norm.interface.choice`.
    The first call makes a plan, which later ones find again by how their operands lie, unless momentum is None: then
    each batch counts otherwise, and has a plan of its own.
    (Ioffe and Szegedy, Batch Normalization, 2015, algorithms 1 and 2.)

    Examples
    --------
    >>> y = norm.batch_norm(x, weight, bias, running_mean=mean, running_variance=variance, relu=True)
    >>> norm.batch_norm(x, weight, bias, y=x, running_mean=mean, running_variance=variance, training=False)  # in place
    """
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    return call(BatchNorm, arrays, (training, momentum, batches, eps, relu, layout, format), stream)


def _is_whole(value) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
