"""The problem of layer norm's and RMS norm's gradients."""

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.images import EPS32, nan_array
from labkit.norm.rows.problem import CHECKED_ELEMENTS, RowProblem

ARRAYS = "dy", "x", "weight", "mean", "rstd", "dx", "dweight", "dbias"


class RowBackward(RowProblem):
    """The gradients of x, weight and bias for a gradient dy of y.

    With x_hat = (x - mean) * rstd and g = dy * weight, and means over a row:

        dx = (g - mean(g) - x_hat * mean(g * x_hat)) * rstd

    In RMS norm x_hat = x * rstd and mean(g) is left out; `mean` and `dbias` are None. dweight is the sum of dy * x_hat
    over all rows, dbias that of dy. The forward pass wrote `mean` and `rstd`. (Ba, Kiros and Hinton, Layer
    Normalization, 2016, by the chain rule; Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, appendix.)
    """

    ARRAYS = ARRAYS
    float32_arrays = "weight", "mean", "rstd", "dweight", "dbias"

    @property
    def flops(self) -> int:
        """Nine FLOP per value: x_hat, g, their product, three sums, dx; layer norm: two sums, two differences more."""
        return self.elements * (13 if self.is_centred else 9)

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of two matrices read and one written, and of the arrays of columns and of rows."""
        vectors = self.columns * (3 if self.is_centred else 2) + self.rows * (2 if self.is_centred else 1)
        return 3 * self.elements * format.itemsize + vectors * FP32.itemsize

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results."""
        return tuple(name for name in ("dx", "dweight", "dbias") if name in self.shapes)

    def checked_part(self, operands: tuple) -> tuple:
        """Return the operands of some rows of a large problem, for dx alone."""
        *arrays, problem = super().checked_part(operands)
        return operands if problem is self else (*arrays, RowSample(**vars(problem)))

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random matrices and weights, the statistics of x, NaN in outputs, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns, 1])
        arrays = {"weight": rng.standard_normal(self.columns).astype(np.float32)}
        arrays["x"] = format.encode(self.draw_matrix(rng))
        arrays["dy"] = normal(rng, (self.rows, self.columns), format)
        chunks = np.array_split(arrays["x"], min(self.rows, -(-self.elements // CHECKED_ELEMENTS)))
        statistics = (self.row_statistics(format.decode(x)) for x in chunks)  # float64 of all rows takes much memory
        mean, variance = map(np.concatenate, zip(*statistics, strict=True))
        arrays["mean"], arrays["rstd"] = (X[:, 0].astype(np.float32) for X in (mean, 1 / np.sqrt(variance + self.eps)))
        arrays["dx"] = nan_array((self.rows, self.columns), format)
        arrays |= {name: nan_array((self.columns,), FP32) for name in ("dweight", "dbias")}
        return *(arrays[name] if name in self.shapes else None for name in self.ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 results for the given statistics, and their bounds.

        Each operation costs a rounding of its result. A sequential sum over n rows is off by sqrt(n) roundings, since
        these are random.
        """
        dy, x, weight, mean, rstd, *_, problem = operands
        dy, x = format.decode(np.asarray(dy)), format.decode(np.asarray(x))
        mean = mean.astype(np.float64)[:, None] if problem.is_centred else 0
        rstd = rstd.astype(np.float64)[:, None]
        x_hat, g = (x - mean) * rstd, dy * weight.astype(np.float64)
        g_mean = g.mean(1, keepdims=True) * problem.is_centred
        dx = (g - g_mean - x_hat * (g * x_hat).mean(1, keepdims=True)) * rstd
        terms = np.abs(g) + np.abs(g).mean(1, keepdims=True) * problem.is_centred
        terms += np.abs(x_hat) * np.abs(g * x_hat).mean(1, keepdims=True)
        results = {
            "dx": (dx, 16 * EPS32 * terms * rstd + format.result.rounding * np.abs(dx) + format.result.underflow)
        }
        roundings = EPS32 * (8 + np.sqrt(problem.rows))
        for name, products in (("dweight", dy * x_hat), ("dbias", dy)):
            results[name] = products.sum(0), roundings * np.abs(products).sum(0)
        return {ARRAYS.index(name): ladder.Expected(*results[name]) for name in problem.outputs}


class RowSample(RowBackward):
    """Rows sampled from a larger problem, with the result dx alone: dweight and dbias are sums over all rows."""

    outputs = ("dx",)
