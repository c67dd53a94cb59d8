"""What every step of a ladder of batch norm in inference computes: images, normalised by statistics that are known."""

from dataclasses import dataclass

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.norm.images import EPS, HARD_MEAN, HARD_VARIANCE, OfImages, blank

ARRAYS = "x", "weight", "bias", "y", "running_mean", "running_variance"


@dataclass(frozen=True)
class BatchInference(OfImages):
    """y = (x - running_mean) / sqrt(running_variance + eps) * weight + bias, for each channel.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    relu
        Whether what is below zero becomes zero; a NaN stays one.
    layout
        The axes of x and y.
    eps
        What is added to the variance.
    hard
        As `BatchForward` has it; the running statistics are those that images are drawn with.

    Raises
    ------
    ValueError
        The sizes make no batch norm; the message says why, and what to do.
    """

    eps: float = 1e-5
    hard: bool = False

    arrays, of_pixels, least_values = ARRAYS, ("x", "y"), 1

    def __post_init__(self):
        super().__post_init__()
        self._check_eps()

    def __str__(self):
        return " ".join(filter(None, (super().__str__(), "hard" * self.hard)))

    @property
    def flops(self) -> int:
        """Of each value: a difference, a product and a sum."""
        return 3 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Images read and written once, and four values of each channel read."""
        return 2 * self.C * self.values * format.itemsize + 4 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random images, weights and running statistics; NaN where a step writes; and the problem."""
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        drawn = {name: rng.standard_normal(self.C).astype(np.float32) for name in ("weight", "bias", "running_mean")}
        drawn["running_variance"] = rng.uniform(0.5, 2, self.C).astype(np.float32)
        if self.hard:
            drawn["running_mean"] = np.float32(HARD_MEAN) + np.float32(np.sqrt(HARD_VARIANCE)) * drawn["running_mean"]
            drawn["running_variance"] *= np.float32(HARD_VARIANCE)
        drawn["x"] = self._drawn(rng, format, self.hard)
        drawn["y"] = blank(self.shapes["y"], format)
        return *(drawn[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """y in float64; each operation on the way to it may cost a rounding."""
        *arrays, problem = operands  # which may be a part of this one
        given = self.named(arrays)
        x = format.decode(np.asarray(given["x"]))
        of = {
            name: problem._by_channel(given[name].astype(np.float64)) for name in ARRAYS if name not in self.of_pixels
        }
        centred = (x - of["running_mean"]) * of["weight"] / np.sqrt(of["running_variance"] + problem.eps)
        y = centred + of["bias"]
        bound = 8 * EPS * (np.abs(centred) + np.abs(of["bias"])) + format.result.rounding * np.abs(y)
        return {ARRAYS.index("y"): problem._rectified(y, bound)}
