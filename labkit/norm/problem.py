"""What every step of a ladder of normalisations computes.

A batch norm takes the mean and the variance of each channel over all images and pixels of a batch, and gives the
channel a mean and a spread that are learned. (Ioffe and Szegedy, Batch Normalization, 2015, algorithm 1.)
"""

from dataclasses import dataclass
from math import prod
from numbers import Real

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.norm.images import EPS, MOST, OfImages, blank

ARRAYS = "x", "weight", "bias", "y", "mean", "variance", "running_mean", "running_variance"


def average_factor(momentum: float | None, batches: int) -> float:
    """How much a batch counts in the running statistics, as torch has it: `momentum`, or where that is None as much as
    each of the batches before it.

    Parameters
    ----------
    momentum
        Of the layer.
    batches
        How many there were before this one.
    """
    return 1 / (batches + 1) if momentum is None else momentum


@dataclass(frozen=True)
class BatchForward(OfImages):
    """Batch norm in training: y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    The steps also write the mean and the variance (of all values, divided by their number), and move the running
    statistics towards them; into these the unbiased variance goes, which is divided by one less.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    relu
        Whether what is below zero becomes zero; a NaN stays one.
    layout
        The axes of x and y.
    momentum, batches
        See `average_factor`.
    eps
        What is added to the variance.
    hard
        Whether `operands` draws each channel about 1e4 with a variance of 1e-3: neighbours in float32 are a 32nd of
        such a spread apart, and the square of the mean is 1e11 variances.

    Raises
    ------
    ValueError
        The sizes make no batch norm; the message says why, and what to do.
    """

    momentum: float | None = 0.1
    batches: int = 0
    eps: float = 1e-5
    hard: bool = False

    arrays, of_pixels = ARRAYS, ("x", "y")

    def __post_init__(self):
        super().__post_init__()
        self._check_counts(batches=0)
        if self.momentum is not None and not isinstance(self.momentum, Real):
            raise TypeError(f"momentum is {self.momentum!r}: give a number, or None for an average of all batches")
        self._check_eps()

    def __str__(self):
        words = [super().__str__(), "hard" * self.hard, f"batches={self.batches}" * (self.momentum is None)]
        return " ".join(filter(None, words))

    @property
    def factor(self) -> float:
        """How much this batch counts in the running statistics."""
        return average_factor(self.momentum, self.batches)

    @property
    def flops(self) -> int:
        """Of each value: two additions, a difference and a square for the statistics, a product and a sum for y."""
        return 6 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Images read and written once, and of each channel weight, bias, mean, variance, and the running two twice."""
        return 2 * self.C * self.values * format.itemsize + 8 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random images, weights and running statistics; NaN where a step writes what was not there; and the problem.

        The weights of some channels are negative. A mean is at most two spreads from zero, if the problem is not hard.
        """
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        drawn = {name: rng.standard_normal(self.C).astype(np.float32) for name in ("weight", "bias", "running_mean")}
        drawn["running_variance"] = rng.uniform(0.5, 2, self.C).astype(np.float32)
        drawn["x"] = self._drawn(rng, format, self.hard)
        drawn["y"] = blank(self.shapes["y"], format)
        drawn |= {name: blank((self.C,), FP32) for name in ("mean", "variance")}
        return *(drawn[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64, and how far a step may be off them.

        A mean may be off by the distance of two neighbours in float32 and a millionth of the spread; a variance by 4
        millionths of itself, however far the mean is from zero. What they make of y follows from this, and each
        operation on the way costs a rounding.
        """
        *arrays, problem = operands  # which may be a part of this one
        given = self.named(arrays)
        x = format.decode(np.asarray(given["x"]))
        mean, variance = x.mean(problem._axes), x.var(problem._axes)
        off = {"mean": EPS * (np.abs(mean) + 8 * np.sqrt(variance)), "variance": 32 * EPS * variance}
        value = {"mean": mean, "variance": variance}
        unbiased = problem.values / (problem.values - 1)
        for name, ratio in (("mean", 1.0), ("variance", unbiased)):
            before = given[f"running_{name}"].astype(np.float64)
            moved = problem.factor * ratio
            value[f"running_{name}"] = (1 - problem.factor) * before + moved * value[name]
            rounding = 4 * EPS * (np.abs((1 - problem.factor) * before) + np.abs(moved * value[name]))
            rounding += EPS * problem.factor * np.abs(before)  # of the factor itself, which 1 is then close to
            off[f"running_{name}"] = moved * off[name] + rounding
        weight, bias = given["weight"].astype(np.float64), given["bias"].astype(np.float64)
        scale = weight / np.sqrt(variance + problem.eps)
        centred = (x - problem._by_channel(mean)) * problem._by_channel(scale)
        beside = problem._beside(given, format)
        y = centred + problem._by_channel(bias) + beside
        bound = 32 * EPS * (np.abs(centred) + np.abs(problem._by_channel(bias)) + np.abs(beside))
        bound += problem._by_channel(np.abs(scale) * off["mean"])
        bound += format.result.rounding * np.abs(y)
        expected = {name: ladder.Expected(value[name], off[name]) for name in value}
        expected["y"] = problem._rectified(y, bound)
        return {self.arrays.index(name): one for name, one in expected.items()}

    def _beside(self, given, format):
        """What else is added before ReLU, in float64."""
        return 0.0


def planes_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Images in NCHW as a matrix: a row for each image and channel, a column for each pixel.

    Raises
    ------
    TooLarge
        Kernels would count the rows in more than 32 bits.
    """
    planes = shape[0] * shape[1]
    if planes >= 2 * MOST:
        raise ladder.TooLarge(f"images and channels make {planes} planes, and this step counts them below {2 * MOST}")
    return planes, prod(shape[2:])
