"""The problem of batch norm's gradients.

With g the gradient of y where y passed ReLU, and 0 elsewhere, and n values per channel:

    dbias = sum of g
    dweight = sum of g * (x - mean) / sqrt(variance + eps)
    dx = weight / sqrt(variance + eps) * (g - dbias / n - (x - mean) / sqrt(variance + eps) * dweight / n)

The forward pass stored the mean and the variance. (Ioffe and Szegedy, Batch Normalization, 2015, section 3, whose sum
over x - mean is 0.)
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.images import EPS32, EpsProblem, nan_array

ARRAYS = "dy", "x", "weight", "bias", "mean", "variance", "dx", "dweight", "dbias"
RELU_MARGIN = 1e-5  # of y's summands: for a smaller |y|, rounding may decide whether y passes ReLU


@dataclass(frozen=True)
class BatchBackward(EpsProblem):
    """The gradients of images, weights and biases of batch norm in training, followed by ReLU.

    Attributes
    ----------
    N, C, H, W, relu, layout
        Images, channels, rows and columns of pixels; whether ReLU followed (a NaN passes); the axes of dy, x and dx.
    eps
        The summand of the variance.
    hard
        Whether `operands` draws each channel around 1e4 with a variance of 1e-3.
    """

    arrays, image_arrays = ARRAYS, ("dy", "x", "dx")

    @property
    def flops(self) -> int:
        """Ten FLOP per value: three for ReLU's mask, three for the two sums, four for dx."""
        return 10 * self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of dy and x read and dx written, and of six values per channel."""
        return 3 * self.C * self.values * format.itemsize + 6 * self.C * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random images with their statistics, gradients and weights, NaN in outputs, and the problem.

        ReLU cuts each channel less than a spread from its mean. The gradients of a channel have a mean, and grow or
        fall with x, so that all terms of dx count. They are 0 where y is so close to 0 that rounding decides whether it
        passes ReLU.
        """
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        weight = rng.standard_normal(self.C).astype(np.float32)
        arrays = {"weight": weight, "bias": weight * rng.uniform(-1, 1, self.C).astype(np.float32)}
        arrays["x"] = self._draw_images(rng, format, self.hard)
        x, axes = format.decode(arrays["x"]), self._reduced_axes
        arrays |= {"mean": x.mean(axes).astype(np.float32), "variance": x.var(axes).astype(np.float32)}
        x_hat = self._normalise(x, arrays)
        slope, level = (self._per_channel(rng.uniform(-1, 1, self.C)) for _ in range(2))
        dy = normal(rng, self.shapes["dy"], FP32) + slope * x_hat + level
        scaled, bias = x_hat * self._per_channel(weight), self._per_channel(arrays["bias"])
        is_close = np.abs(scaled + bias) < RELU_MARGIN * (np.abs(scaled) + np.abs(bias))
        arrays["dy"] = format.encode(np.where(is_close, 0, dy))
        arrays["dx"] = nan_array(self.shapes["dx"], format)
        arrays |= {name: nan_array((self.C,), FP32) for name in ("dweight", "dbias")}
        return *(arrays[name] for name in ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 gradients and their bounds.

        The bound of a sum is 8 roundings of itself and of the root of its squared terms: so do the roundings of partial
        sums add up. (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019.) The bound of dx
        follows from it, plus a rounding per operation.
        """
        *operand_arrays, problem = operands  # the problem may be a sample of this one's channels
        arrays, axes = self.arrays_by_name(operand_arrays), problem._reduced_axes
        dy, x = (format.decode(np.asarray(arrays[name])) for name in ("dy", "x"))
        x_hat = problem._normalise(x, arrays)
        g = dy
        if problem.relu:
            g = np.where(problem._relu_input(x_hat, arrays, format) <= 0, 0, dy)  # a NaN is not below zero
        values = {"dbias": g.sum(axes), "dweight": (g * x_hat).sum(axes)}
        squares = {"dbias": (g**2).sum(axes), "dweight": ((g * x_hat) ** 2).sum(axes)}
        bounds = {name: 8 * EPS32 * np.sqrt(squares[name] + values[name] ** 2) for name in values}

        mean = {name: problem._per_channel(values[name]) / problem.values for name in values}
        mean_bound = {name: problem._per_channel(bounds[name]) / problem.values for name in values}
        scale = problem._per_channel(arrays["weight"] / np.sqrt(arrays["variance"].astype(np.float64) + problem.eps))
        terms = np.abs(g) + np.abs(mean["dbias"]) + np.abs(x_hat * mean["dweight"])
        values["dx"] = scale * (g - mean["dbias"] - x_hat * mean["dweight"])
        bounds["dx"] = np.abs(scale) * (4 * EPS32 * terms + mean_bound["dbias"] + np.abs(x_hat) * mean_bound["dweight"])
        bounds["dx"] += format.result.rounding * np.abs(values["dx"]) + format.result.underflow
        return {self.arrays.index(name): ladder.Expected(values[name], bounds[name]) for name in values}

    def _normalise(self, x: Float[np.ndarray, "..."], arrays: dict[str, Shaped[np.ndarray, "..."]]):
        """Return x with mean 0 and spread 1, in float64."""
        root = np.sqrt(arrays["variance"].astype(np.float64) + self.eps)
        return (x - self._per_channel(arrays["mean"])) / self._per_channel(root)

    def _relu_input(self, x_hat, arrays, format: Format):
        """Return an array that is above zero where y passed ReLU."""
        return x_hat * self._per_channel(arrays["weight"]) + self._per_channel(arrays["bias"])
