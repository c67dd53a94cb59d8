"""The call `batch_norm`, in training and in inference, and its operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.calls.call import run_operation
from labkit.calls.operation import call_of
from labkit.formats import Format
from labkit.norm import problem
from labkit.norm.images import Layout
from labkit.norm.inference import BatchInference
from labkit.norm.interface.channels import ImageOperation, check_bool, check_number
from labkit.norm.problem import BatchForward

RUNNING = "running_mean", "running_variance"
MEASURED = "mean", "variance"


@dataclass(frozen=True)
class BatchNorm(ImageOperation):
    """Operation of the call `batch_norm`, which describes the options."""

    training: bool = True
    momentum: float | None = 0.1
    batches: int | None = None
    eps: float = 1e-5
    relu: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None

    arrays, image_arrays = problem.ARRAYS, ("x", "y")
    outputs, required, in_place = ("y",), ("x",), {"y": "x"}  # y may overwrite x

    def __post_init__(self):
        super().__post_init__()
        check_bool("training", self.training)
        if self.momentum is not None:
            check_number("momentum", self.momentum, condition=", or None for an average of all batches")
        is_whole = isinstance(self.batches, Integral) and not isinstance(self.batches, bool)
        if self.batches is not None and not (is_whole and self.batches >= 0):
            raise ValueError(f"batches is {self.batches!r}: give how many there were before this one, 0 or more")
        if self.training and self.momentum is None and self.batches is None:
            raise ValueError(
                "momentum is None, which takes the average of all batches: say how many there were before this one, "
                "as batches"
            )

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the written arrays."""
        return ("y", *MEASURED, *RUNNING) if self.training else ("y",)

    @property
    def read(self) -> tuple[str, ...]:
        """Names of the written arrays whose old values are read."""
        return RUNNING

    @property
    def varies(self) -> str:
        """Reason why a plan serves one call only, and what to do; empty if plans are kept."""
        if self.training and self.momentum is None:
            return "momentum is None, which counts each batch otherwise, and a plan counts all alike: give a number"
        return ""

    def make_problem(self, *sizes) -> BatchForward | BatchInference:
        if self.training:
            return BatchForward(*sizes, self.momentum, self.batches or 0, self.eps)
        return BatchInference(*sizes, self.eps)

    def check(self, operands: Mapping[str, object]) -> None:
        super().check(operands)
        running = [name for name in RUNNING if name in operands]
        if len(running) == 1:
            raise TypeError(f"{running[0]} stands alone: give both running statistics, or none")
        if self.training:
            return
        if not running:
            raise TypeError("running_mean and running_variance are None, and inference normalises by them: give both")
        for name in MEASURED:
            if name in operands:
                raise TypeError(f"{name} is not measured in inference: leave it out, or say training=True")


@call_of(BatchNorm)
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
    """Compute y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    In training the mean and the variance are those of the batch, and the running statistics move towards them; in
    inference they are the running statistics. Results and running statistics are those of
    `torch.nn.functional.batch_norm`.

    Parameters
    ----------
    x
        Images N x C x pixels ("NCHW") or N x pixels x C ("NHWC") with any number of pixel axes: float32, bfloat16 or
        float16. An array on the device (of numba, torch, or with `__cuda_array_interface__`), or on the host (of NumPy
        or torch), which is copied to the device. On the device the elements have no gaps, and are in the order of NCHW
        or of NHWC, whatever the order of the axes: for a channels_last tensor of torch say layout="NCHW".
    weight, bias
        Factor and summand per channel; None means 1 and 0.
    y
        Output array, in the memory order of x; it may be x itself. None makes a new array of x's kind.
    running_mean, running_variance
        Running statistics: updated in training, if they are passed; read in inference. The variance is the unbiased
        one, divided by the number of values minus 1.
    mean, variance
        Output arrays for the statistics of the batch; None stores none. The variance is divided by the number of
        values.
    training
        Whether to normalise by the statistics of the batch.
    momentum, batches
        Weight of the batch in the running statistics; or None, for the average of all batches, and the number of
        earlier batches.
    eps
        Summand of the variance.
    relu
        Whether ReLU follows: values below zero become zero, a NaN stays NaN.
    layout
        Order of the axes of x and y.
    format
        Format of bits: "bfloat16" (uint16). None means the format of the arrays' type.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of torch
        or CuPy arrays, else the default stream.

    Returns
    -------
    y. Statistics are float32, and accurate even if a mean is many spreads from zero. Equal calls give equal bits.

    Raises
    ------
    TypeError
        An operand is no array, or has the wrong type.
    ValueError
        Shapes do not fit, a channel has a single value in training, arrays have gaps, or an output shares memory with
        another array.

    Notes
    -----
    The kernels are those of `norm.ladder("batch")`, "channels_last" and "batch_inference";
    `labkit.norm.interface.choice` chooses one.
    The first call makes a plan. Later calls on arrays of the same layouts reuse it, unless momentum is None: then each
    batch has another weight, and a plan of its own.
    (Ioffe and Szegedy, Batch Normalization, 2015, algorithms 1 and 2.)

    Examples
    --------
    >>> y = norm.batch_norm(x, weight, bias, running_mean=mean, running_variance=variance, relu=True)
    >>> norm.batch_norm(x, weight, bias, y=x, running_mean=mean, running_variance=variance, training=False)  # in place
    """
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    return run_operation(BatchNorm, arrays, (training, momentum, batches, eps, relu, layout, format), stream)
