"""Batch norm in training, a residual added to it, and ReLU, as at the end of a block of a residual network; and back.

(He and others, Deep Residual Learning for Image Recognition, 2016, figure 2.)
"""

from dataclasses import dataclass

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.backward import ARRAYS, BatchBackward
from labkit.norm.images import blank
from labkit.norm.problem import BatchForward


@dataclass(frozen=True)
class ResidualForward(BatchForward):
    """y = relu(batch norm of x + residual), with attributes as `BatchForward` has them."""

    arrays = "x", "residual", "weight", "bias", "y", "mean", "variance", "running_mean", "running_variance"
    of_pixels = "x", "residual", "y"

    @property
    def flops(self) -> int:
        """One more of each value."""
        return super().flops + self.C * self.values

    def min_bytes(self, format: Format = FP32) -> int:
        """The residual is read too."""
        return super().min_bytes(format) + self.C * self.values * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Those of `BatchForward`, and a random residual."""
        x, *others, _ = super().operands(format, seed)
        rng = np.random.default_rng([seed, self.C, self.values])
        return x, normal(rng, self.shapes["residual"], format), *others, self

    def _beside(self, given, format):
        return format.decode(np.asarray(given["residual"]))


@dataclass(frozen=True)
class ResidualBackward(BatchBackward):
    """The gradients of images, of the residual, of weights and of biases; attributes as `BatchBackward` has them.

    What ReLU let through is seen from y: it cannot be computed from x alone.
    """

    arrays = "dy", "x", "y", "weight", "mean", "variance", "dx", "dresidual", "dweight", "dbias"
    of_pixels = "dy", "x", "y", "dx", "dresidual"

    def min_bytes(self, format: Format = FP32) -> int:
        """y is read too, and the residual's gradient written."""
        return super().min_bytes(format) + 2 * self.C * self.values * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Those of `BatchBackward`, with a random residual in y."""
        drawn = dict(zip(ARRAYS, super().operands(format, seed), strict=False))
        rng = np.random.default_rng([seed, self.C, self.values])
        y = super()._before_relu(self._normalised(format.decode(drawn["x"]), drawn), drawn, format)
        y = y + normal(rng, self.shapes["y"], FP32)
        drawn["y"] = format.encode(np.maximum(y, 0) if self.relu else y)
        drawn["dresidual"] = blank(self.shapes["dresidual"], format)
        return *(drawn[name] for name in self.arrays), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Those of `BatchBackward`; the residual's gradient is that of y where ReLU let it through, bit by bit."""
        given = self.named(operands)
        dy, y = (format.decode(np.asarray(given[name])) for name in ("dy", "y"))
        let_through = np.where(y <= 0, 0, dy) if self.relu else dy
        found = {self.arrays.index("dresidual"): ladder.Expected(let_through, np.zeros_like(let_through))}
        return super().expected(operands, format) | found

    def _before_relu(self, normalised, given, format):
        return format.decode(np.asarray(given["y"]))
