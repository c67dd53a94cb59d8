"""What every step of a ladder of batch norm's gradients computes.

With g the gradient of y where ReLU let y through, and 0 elsewhere, and n values in a channel:

    dbias = sum of g
    dweight = sum of g * (x - mean) / sqrt(variance + eps)
    dx = weight / sqrt(variance + eps) * (g - dbias / n - (x - mean) / sqrt(variance + eps) * dweight / n)

The mean and the variance are those that the forward pass kept. (Ioffe and Szegedy, Batch Normalization, 2015, section
3, whose sum over x - mean is 0.)
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.images import EPS, OfImages, blank

ARRAYS = "dy", "x", "weight", "bias", "mean", "variance", "dx", "dweight", "dbias"
NEAR = 1e-5  # of what is added up to y: below this, rounding may decide whether ReLU let y through


@dataclass(frozen=True)
class BatchBackward(OfImages):
    """The gradients of batch norm in training, followed by ReLU: of images, weights and biases.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    relu
        Whether ReLU followed: it lets through what is above zero, and what is NaN.
    layout
        The axes of dy, x and dx.
    eps
        What was added to the variance.
    hard
        As `BatchForward` has it.

    Raises
    ------
    ValueError
        The sizes make no batch norm; the message says why, and what to do.
    """

    eps: float = 1e-5
    hard: bool = False

    arrays, of_pixels = ARRAYS, ("dy", "x", "dx")

    def __post_init__(self):
        super().__post_init__()
        self._check_eps()

    def __str__(self):
        return " ".join(filter(None, (super().__str__(), "hard" * self.hard)))

    @property
    def flops(self) -> int:
        """Of each value: three operations for ReLU's mask, three for the two sums, four for dx."""
        return 10 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """dy and x read once, dx written; and six values of each channel."""
        return 3 * self.C * self.values * format.itemsize + 6 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random images with their statistics, gradients and weights; NaN where a step writes; and the problem.

        ReLU cuts each channel less than a spread from its mean. The gradients of a channel have a mean, and grow or
        fall with x, so that all terms of dx count. They are 0 where y is so near 0 that rounding decides whether ReLU
        let it through.
        """
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        weight = rng.standard_normal(self.C).astype(np.float32)
        drawn = {"weight": weight, "bias": weight * rng.uniform(-1, 1, self.C).astype(np.float32)}
        drawn["x"] = self._drawn(rng, format, self.hard)
        x = format.decode(drawn["x"])
        drawn |= {"mean": x.mean(self._axes).astype(np.float32), "variance": x.var(self._axes).astype(np.float32)}
        normalised = self._normalised(x, drawn)
        slope, level = (self._by_channel(rng.uniform(-1, 1, self.C)) for _ in range(2))
        dy = normal(rng, self.shapes["dy"], FP32) + slope * normalised + level
        scaled, bias = normalised * self._by_channel(weight), self._by_channel(drawn["bias"])
        drawn["dy"] = format.encode(np.where(np.abs(scaled + bias) < NEAR * (np.abs(scaled) + np.abs(bias)), 0, dy))
        drawn["dx"] = blank(self.shapes["dx"], format)
        drawn |= {name: blank((self.C,), FP32) for name in ("dweight", "dbias")}
        return *(drawn[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The gradients in float64, and how far a step may be off them.

        A sum may be off by 8 roundings of itself, and of the root of its squared terms, which is how roundings of
        sums in parts add up. (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019.) What the
        sums make of dx follows from this, and each operation on the way costs a rounding.
        """
        *arrays, problem = operands  # which may be a part of this one
        given = self.named(arrays)
        dy, x = (format.decode(np.asarray(given[name])) for name in ("dy", "x"))
        normalised = problem._normalised(x, given)
        g = (
            np.where(problem._before_relu(normalised, given, format) <= 0, 0, dy) if problem.relu else dy
        )  # a NaN is not
        value = {"dbias": g.sum(problem._axes), "dweight": (g * normalised).sum(problem._axes)}
        squares = {"dbias": (g**2).sum(problem._axes), "dweight": ((g * normalised) ** 2).sum(problem._axes)}
        off = {name: 8 * EPS * np.sqrt(squares[name] + value[name] ** 2) for name in value}

        share = {name: problem._by_channel(value[name]) / problem.values for name in value}
        off_share = {name: problem._by_channel(off[name]) / problem.values for name in value}
        scale = problem._by_channel(given["weight"] / np.sqrt(given["variance"].astype(np.float64) + problem.eps))
        terms = np.abs(g) + np.abs(share["dbias"]) + np.abs(normalised * share["dweight"])
        value["dx"] = scale * (g - share["dbias"] - normalised * share["dweight"])
        off["dx"] = np.abs(scale) * (4 * EPS * terms + off_share["dbias"] + np.abs(normalised) * off_share["dweight"])
        off["dx"] += format.result.rounding * np.abs(value["dx"])
        return {self.arrays.index(name): ladder.Expected(value[name], off[name]) for name in value}

    def _normalised(self, x: Float[np.ndarray, "..."], given: dict[str, Shaped[np.ndarray, "..."]]):
        """x with mean 0 and spread 1, in float64."""
        root = np.sqrt(given["variance"].astype(np.float64) + self.eps)
        return (x - self._by_channel(given["mean"])) / self._by_channel(root)

    def _before_relu(self, normalised, given, format: Format):
        """What is above zero where ReLU let it through."""
        return normalised * self._by_channel(given["weight"]) + self._by_channel(given["bias"])
