"""The problem of batch norm in inference: images, normalised by given statistics."""

from dataclasses import dataclass

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.norm.images import EPS32, HARD_MEAN, HARD_VARIANCE, EpsProblem, nan_array

ARRAYS = "x", "weight", "bias", "y", "running_mean", "running_variance"


@dataclass(frozen=True)
class BatchInference(EpsProblem):
    """y = (x - running_mean) / sqrt(running_variance + eps) * weight + bias, for each channel.

    Attributes
    ----------
    N, C, H, W, relu, layout
        Images, channels, rows and columns of pixels; whether ReLU follows (a NaN stays NaN); the axes of x and y.
    eps
        The summand of the variance.
    hard
        Whether `operands` draws each channel, and its running mean, around 1e4 with a variance of about 1e-3.
    """

    arrays, image_arrays, min_values = ARRAYS, ("x", "y"), 1

    @property
    def flops(self) -> int:
        """Three FLOP per value: a difference and a multiply-add."""
        return 3 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of images read and written, and of four values read per channel."""
        return 2 * self.C * self.values * format.itemsize + 4 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random images, weights and running statistics, NaN in y, and the problem."""
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        arrays = self._draw_channels(rng)
        if self.hard:
            spread = np.float32(np.sqrt(HARD_VARIANCE))
            arrays["running_mean"] = np.float32(HARD_MEAN) + spread * arrays["running_mean"]
            arrays["running_variance"] *= np.float32(HARD_VARIANCE)
        arrays["x"] = self._draw_images(rng, format, self.hard)
        arrays["y"] = nan_array(self.shapes["y"], format)
        return *(arrays[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return y in float64; its bound has a rounding per operation."""
        *operand_arrays, problem = operands  # the problem may be a sample of this one's channels
        arrays = self.arrays_by_name(operand_arrays)
        x = format.decode(np.asarray(arrays["x"]))
        weight, bias, mean, variance = (
            problem._per_channel(arrays[name].astype(np.float64)) for name in ARRAYS if name not in self.image_arrays
        )
        centred = (x - mean) * weight / np.sqrt(variance + problem.eps)
        y = centred + bias
        bound = 8 * EPS32 * (np.abs(centred) + np.abs(bias))
        bound += format.result.rounding * np.abs(y) + format.result.underflow
        return {ARRAYS.index("y"): problem._apply_relu(y, bound)}
