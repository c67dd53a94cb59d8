"""The problems of batch norm in training with a residual added and ReLU, and of its gradients.

It ends each block of a residual network.

(He and others, Deep Residual Learning for Image Recognition, 2016, figure 2.)
"""

from dataclasses import dataclass

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.backward import ARRAYS, BatchBackward
from labkit.norm.images import nan_array
from labkit.norm.problem import BatchForward


@dataclass(frozen=True)
class ResidualForward(BatchForward):
    """y = relu(batch norm of x + residual), with the attributes of `BatchForward`."""

    arrays = "x", "residual", "weight", "bias", "y", "mean", "variance", "running_mean", "running_variance"
    image_arrays = "x", "residual", "y"

    @property
    def flops(self) -> int:
        """One FLOP per value more than `BatchForward`."""
        return super().flops + self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of `BatchForward`, and of the residual read."""
        return super().min_bytes(format) + self.C * self.values * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return the operands of `BatchForward`, and a random residual."""
        x, *others, _ = super().operands(format, seed)
        rng = np.random.default_rng([seed, self.C, self.values])
        return x, normal(rng, self.shapes["residual"], format), *others, self

    def _residual(self, arrays, format):
        return format.decode(np.asarray(arrays["residual"]))


@dataclass(frozen=True)
class ResidualBackward(BatchBackward):
    """The gradients of images, residual, weights and biases, with the attributes of `BatchBackward`.

    y shows which values passed ReLU: x alone does not determine them.
    """

    arrays = "dy", "x", "y", "weight", "mean", "variance", "dx", "dresidual", "dweight", "dbias"
    image_arrays = "dy", "x", "y", "dx", "dresidual"

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of `BatchBackward`, of y read, and of the residual's gradient written."""
        return super().min_bytes(format) + 2 * self.C * self.values * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return the operands of `BatchBackward`, with a random residual in y."""
        arrays = dict(zip(ARRAYS, super().operands(format, seed), strict=False))
        rng = np.random.default_rng([seed, self.C, self.values])
        y = super()._relu_input(self._normalise(format.decode(arrays["x"]), arrays), arrays, format)
        y = y + normal(rng, self.shapes["y"], FP32)
        arrays["y"] = format.encode(np.maximum(y, 0) if self.relu else y)
        arrays["dresidual"] = nan_array(self.shapes["dresidual"], format)
        return *(arrays[name] for name in self.arrays), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the results of `BatchBackward`; dresidual is the bits of dy where y passed ReLU, else 0."""
        arrays = self.arrays_by_name(operands)
        dy, y = (format.decode(np.asarray(arrays[name])) for name in ("dy", "y"))
        masked = np.where(y <= 0, 0, dy) if self.relu else dy
        expected = {self.arrays.index("dresidual"): ladder.Expected(masked, np.zeros_like(masked))}
        return super().expected(operands, format) | expected

    def _relu_input(self, x_hat, arrays, format):
        return format.decode(np.asarray(arrays["y"]))
