"""What every step of a ladder of normalisations computes.

A batch norm takes the mean and the variance of each channel over all images and pixels of a batch, and gives the
channel a mean and a spread that are learned. (Ioffe and Szegedy, Batch Normalization, 2015, algorithm 1.)
"""

from dataclasses import dataclass, replace
from math import prod
from numbers import Integral, Real
from typing import Literal

import numpy as np
from jaxtyping import Float64, Shaped

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.gemm.problem import normal

Layout = Literal["NCHW", "NHWC"]
LAYOUTS = "NCHW", "NHWC"
EPS = float(np.finfo(np.float32).eps)
HARD_MEAN, HARD_VARIANCE = 1e4, 1e-3
LARGE = 2**24  # elements, above which some of the channels tell the error
SOME = 6  # of them
MOST = 2**31
ARRAYS = "x", "weight", "bias", "y", "mean", "variance", "running_mean", "running_variance"
OF_PIXELS = "x", "y"


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
class BatchForward(ladder.Problem):
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

    called = "batch norm"
    in_float32 = tuple(name for name in ARRAYS if name not in OF_PIXELS)

    N: int
    C: int
    H: int
    W: int
    relu: bool = True
    layout: Layout = "NCHW"
    momentum: float | None = 0.1
    batches: int = 0
    eps: float = 1e-5
    hard: bool = False

    def __post_init__(self):
        for name, least in (("N", 1), ("C", 1), ("H", 1), ("W", 1), ("batches", 0)):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not least <= size < MOST:
                raise ValueError(f"{name} is {size}, but it must be at least {least} and below {MOST}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        if self.values == 1:
            raise ValueError("each channel has one value, which has no unbiased variance: train with more than one")
        if self.values >= MOST:
            raise ValueError(f"each channel has {self.values} values, and kernels count them below {MOST}: take fewer")
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")
        if self.momentum is not None and not isinstance(self.momentum, Real):
            raise TypeError(f"momentum is {self.momentum!r}: give a number, or None for an average of all batches")
        if not isinstance(self.eps, Real) or not self.eps >= 0:
            raise ValueError(f"eps is {self.eps!r}: give a number that is not below 0")

    def __str__(self):
        words = [f"{self.N}x{self.C}x{self.H}x{self.W}", "relu" * self.relu, "NHWC" * (self.layout == "NHWC")]
        words += ["hard" * self.hard, f"batches={self.batches}" * (self.momentum is None)]
        return " ".join(filter(None, words))

    @property
    def values(self) -> int:
        """Values of a channel."""
        return self.N * self.H * self.W

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        pixels = (self.C, self.H, self.W) if self.layout == "NCHW" else (self.H, self.W, self.C)
        return {name: (self.N, *pixels) if name in OF_PIXELS else (self.C,) for name in ARRAYS}

    @property
    def axes(self) -> dict[str, str]:
        """Those of images as the layout has them; the others have one."""
        return {name: self.layout if name in OF_PIXELS else "C" for name in ARRAYS}

    @property
    def factor(self) -> float:
        """How much this batch counts in the running statistics."""
        return average_factor(self.momentum, self.batches)

    @property
    def flops(self) -> int:
        """Of each value: two additions, a difference and a square for the statistics, a product and a sum for y."""
        return 6 * self.C * self.values

    def least_bytes(self, format: Format = FP32) -> int:
        """Images read and written once, and of each channel weight, bias, mean, variance, and the running two twice."""
        return 2 * self.C * self.values * format.itemsize + 8 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random images, weights and running statistics; NaN where a step writes what was not there; and the problem.

        The weights of some channels are negative. A mean is at most two spreads from zero, if the problem is not hard.
        """
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        drawn = {name: rng.standard_normal(self.C).astype(np.float32) for name in ("weight", "bias", "running_mean")}
        drawn["running_variance"] = rng.uniform(0.5, 2, self.C).astype(np.float32)
        if self.hard:
            centre, spread = np.full(self.C, HARD_MEAN), np.full(self.C, np.sqrt(HARD_VARIANCE))
        else:
            centre, spread = rng.uniform(-1, 1, self.C), rng.uniform(0.5, 2, self.C)
        x = normal(rng, self.shapes["x"], FP32)
        x = x * self._by_channel(spread).astype(np.float32) + self._by_channel(centre).astype(np.float32)
        drawn["x"] = format.encode(x)
        drawn["y"] = np.full(self.shapes["y"], format.result.encode(np.nan), format.result.dtype)
        blank = {name: np.full(self.C, np.nan, np.float32) for name in ("mean", "variance")}
        return *((drawn | blank)[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64, and how far a step may be off them.

        A mean may be off by the distance of two neighbours in float32 and a millionth of the spread; a variance by 4
        millionths of itself, however far the mean is from zero. What they make of y follows from this, and each
        operation on the way costs a rounding.
        """
        *arrays, problem = operands  # which may be a part of this one
        given = dict(zip(ARRAYS, arrays, strict=True))
        x = format.decode(np.asarray(given["x"]))
        axes = tuple(axis for axis, letter in enumerate(problem.layout) if letter != "C")
        mean, variance = x.mean(axes), x.var(axes)
        off = {"mean": EPS * (np.abs(mean) + 8 * np.sqrt(variance)), "variance": 32 * EPS * variance}
        value = {"mean": mean, "variance": variance}
        unbiased = problem.values / (problem.values - 1)
        for name, ratio in (("mean", 1.0), ("variance", unbiased)):
            before = given[f"running_{name}"].astype(np.float64)
            moved = problem.factor * ratio
            value[f"running_{name}"] = (1 - problem.factor) * before + moved * value[name]
            rounding = 4 * EPS * (np.abs((1 - problem.factor) * before) + np.abs(moved * value[name]))
            off[f"running_{name}"] = moved * off[name] + rounding
        weight, bias = given["weight"].astype(np.float64), given["bias"].astype(np.float64)
        scale = weight / np.sqrt(variance + problem.eps)
        centred = (x - problem._by_channel(mean)) * problem._by_channel(scale)
        y = centred + problem._by_channel(bias)
        bound = 32 * EPS * (np.abs(centred) + np.abs(problem._by_channel(bias)))
        bound += problem._by_channel(np.abs(scale) * off["mean"])
        value["y"] = np.maximum(y, 0) if problem.relu else y
        off["y"] = bound + format.result.rounding * np.abs(y)
        return {ARRAYS.index(name): ladder.Expected(value[name], off[name]) for name in value}

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the channels, the first and the last among them."""
        if self.C * self.values <= LARGE:
            return operands
        *arrays, _ = operands
        some = np.unique(np.linspace(0, self.C - 1, SOME).astype(int))
        axis = {name: self.layout.index("C") if name in OF_PIXELS else 0 for name in ARRAYS}
        kept = [np.take(X, some, axis[name]) for name, X in zip(ARRAYS, arrays, strict=True)]
        return *kept, replace(self, C=len(some))

    def _by_channel(self, of_channel: Float64[np.ndarray, " C"]) -> Shaped[np.ndarray, "..."]:
        """A value for each channel, shaped so that it meets the images."""
        return of_channel[:, None, None] if self.layout == "NCHW" else of_channel


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
