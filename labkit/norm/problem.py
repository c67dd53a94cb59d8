"""The problem of batch norm in training.

Batch norm takes the mean and the variance of each channel over all images and pixels of a batch, and gives the channel
a learned mean and spread. (Ioffe and Szegedy, Batch Normalization, 2015, algorithm 1.)
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.sizes import check_sizes
from labkit.norm.images import EPS32, ImageProblem, check_eps, nan_array

ARRAYS = "x", "weight", "bias", "y", "mean", "variance", "running_mean", "running_variance"


def average_factor(momentum: float | None, batches: int) -> float:
    """Return the weight of a batch in the running statistics, as torch computes it.

    Parameters
    ----------
    momentum
        The layer's momentum, which is the weight; None for the average of all batches.
    batches
        Number of earlier batches.
    """
    return 1 / (batches + 1) if momentum is None else momentum


@dataclass(frozen=True)
class BatchForward(ImageProblem):
    """Batch norm in training: y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    The kernels also write the mean and the variance (divided by the number of values), and move the running statistics
    towards them. The running variance takes the unbiased variance, which is divided by the number of values minus 1.

    Attributes
    ----------
    N, C, H, W, relu, layout
        Images, channels, rows and columns of pixels; whether ReLU follows (a NaN stays NaN); the axes of x and y.
    momentum, batches
        Weight of this batch in the running statistics; None for the average with so many earlier batches.
    eps
        The summand of the variance.
    hard
        Whether `operands` draws each channel around 1e4 with a variance of 1e-3. Neighbours in float32 are then 1/32 of
        the spread apart, and the square of the mean is 1e11 variances.
    """

    momentum: float | None = 0.1
    batches: int = 0
    eps: float = 1e-5
    hard: bool = False

    arrays, image_arrays = ARRAYS, ("x", "y")

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self, batches=0)
        if self.momentum is not None and not isinstance(self.momentum, Real):
            raise TypeError(f"momentum is {self.momentum!r}: give a number, or None for an average of all batches")
        check_eps(self.eps)

    def __str__(self):
        words = [super().__str__(), "hard" * self.hard, f"batches={self.batches}" * (self.momentum is None)]
        return " ".join(filter(None, words))

    @property
    def batch_weight(self) -> float:
        """Weight of this batch in the running statistics."""
        return average_factor(self.momentum, self.batches)

    @property
    def flops(self) -> int:
        """Six FLOP per value: two additions, a difference and a square for the statistics, a multiply-add for y."""
        return 6 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of images read and written, and per channel of 4 arrays once and 2 running arrays twice."""
        return 2 * self.C * self.values * format.itemsize + 8 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random images, weights and running statistics, NaN in outputs, and the problem.

        The weights of some channels are negative. If the problem is not hard, a mean is at most two spreads from zero.
        """
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        arrays = self._draw_channels(rng)
        arrays["x"] = self._draw_images(rng, format, self.hard)
        arrays["y"] = nan_array(self.shapes["y"], format)
        arrays |= {name: nan_array((self.C,), FP32) for name in ("mean", "variance")}
        return *(arrays[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 results and their bounds.

        The bound of a mean is the distance of two neighbours in float32 and a millionth of the spread. That of a
        variance is 4 millionths of itself, however far the mean is from zero. The bound of y follows from these, plus a
        rounding per operation.
        """
        *operand_arrays, problem = operands  # the problem may be a sample of this one's channels
        arrays = self.arrays_by_name(operand_arrays)
        x = format.decode(np.asarray(arrays["x"]))
        mean, variance = x.mean(problem._reduced_axes), x.var(problem._reduced_axes)
        bounds = {"mean": EPS32 * (np.abs(mean) + 8 * np.sqrt(variance)), "variance": 32 * EPS32 * variance}
        values = {"mean": mean, "variance": variance}
        unbiased = problem.values / (problem.values - 1)
        for name, ratio in (("mean", 1.0), ("variance", unbiased)):
            before = arrays[f"running_{name}"].astype(np.float64)
            weight_of_batch = problem.batch_weight * ratio
            summands = (1 - problem.batch_weight) * before, weight_of_batch * values[name]
            values[f"running_{name}"] = summands[0] + summands[1]
            rounding = 4 * EPS32 * (np.abs(summands[0]) + np.abs(summands[1]))
            rounding += EPS32 * problem.batch_weight * np.abs(before)  # of the weight itself, if it is close to 1
            bounds[f"running_{name}"] = weight_of_batch * bounds[name] + rounding
        weight, bias = arrays["weight"].astype(np.float64), problem._per_channel(arrays["bias"].astype(np.float64))
        scale = weight / np.sqrt(variance + problem.eps)
        centred = (x - problem._per_channel(mean)) * problem._per_channel(scale)
        residual = problem._residual(arrays, format)
        y = centred + bias + residual
        bound = 32 * EPS32 * (np.abs(centred) + np.abs(bias) + np.abs(residual))
        bound += problem._per_channel(np.abs(scale) * bounds["mean"])
        bound += format.result.rounding * np.abs(y) + format.result.underflow
        expected = {name: ladder.Expected(values[name], bounds[name]) for name in values}
        expected["y"] = problem._apply_relu(y, bound)
        return {self.arrays.index(name): result for name, result in expected.items()}

    def _residual(self, arrays, format):
        """Return the summand before ReLU in float64; a subclass has one."""
        return 0.0
