"""What every step of the backward pass of layer norm and RMS norm computes: what a loss owes to x, weight and bias."""

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.problem import EPS
from labkit.norm.rows.problem import LARGE, Rows

ARRAYS = "dy", "x", "weight", "mean", "rstd", "dx", "dweight", "dbias"


class RowBackward(Rows):
    """The gradients of x, weight and bias, where dy is that of y.

    With n = (x - mean) * rstd and g = dy * weight, and means over a row:

        dx = (g - mean(g) - n * mean(g * n)) * rstd

    In RMS norm n = x * rstd and mean(g) is left out; `mean` and `dbias` are None then. dweight is the sum of dy * n
    over all rows, dbias that of dy. `mean` and `rstd` are what the forward pass wrote. (Ba, Kiros and Hinton, Layer
    Normalization, 2016, by the chain rule; Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, appendix.)
    """

    ARRAYS = ARRAYS
    float32_arrays = "weight", "mean", "rstd", "dweight", "dbias"

    @property
    def flops(self) -> int:
        """Of each value: n, g, their product, three sums and dx; in layer norm two sums and two differences more."""
        return self.elements * (13 if self.is_centred else 9)

    def min_bytes(self, format: Format = FP32) -> int:
        """Two matrices read and one written, and what there is of columns and rows."""
        beside = self.columns * (3 if self.is_centred else 2) + self.rows * (2 if self.is_centred else 1)
        return 3 * self.elements * format.itemsize + beside * FP32.itemsize

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is computed."""
        return tuple(name for name in ("dx", "dweight", "dbias") if name in self.shapes)

    def part(self, operands: tuple) -> tuple:
        """Of a large problem dx of some rows, the first and the last among them."""
        *arrays, problem = super().part(operands)
        return operands if problem is self else (*arrays, SomeRows(**vars(problem)))

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random matrices and weights, the statistics of x, NaN where a step writes; and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns, 1])
        of = {"weight": rng.standard_normal(self.columns).astype(np.float32), "x": format.encode(self.drawn(rng))}
        of["dy"] = normal(rng, (self.rows, self.columns), format)
        pieces = np.array_split(of["x"], min(self.rows, -(-self.elements // LARGE)))
        found = (self.statistics(format.decode(x)) for x in pieces)
        mean, variance = map(np.concatenate, zip(*found, strict=True))
        of["mean"], of["rstd"] = (X[:, 0].astype(np.float32) for X in (mean, 1 / np.sqrt(variance + self.eps)))
        of["dx"] = np.full((self.rows, self.columns), format.result.encode(np.nan), format.result.dtype)
        of |= {name: np.full(self.columns, np.nan, np.float32) for name in ("dweight", "dbias")}
        return *(of[name] if name in self.shapes else None for name in self.ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64 for the statistics that are given, and how far a step may be off them.

        Each operation costs a rounding of what it makes. A sum of as many numbers as there are rows, one after the
        other, is off by as many roundings as the root of their number, where these are random.
        """
        dy, x, weight, mean, rstd, *_, problem = operands
        dy, x = format.decode(np.asarray(dy)), format.decode(np.asarray(x))
        centre = mean.astype(np.float64)[:, None] if problem.is_centred else 0
        rstd = rstd.astype(np.float64)[:, None]
        n, g = (x - centre) * rstd, dy * weight.astype(np.float64)
        of_g = g.mean(1, keepdims=True) * problem.is_centred
        of_product = (g * n).mean(1, keepdims=True)
        dx = (g - of_g - n * of_product) * rstd
        off = np.abs(g) + np.abs(g).mean(1, keepdims=True) * problem.is_centred
        off += np.abs(n) * np.abs(g * n).mean(1, keepdims=True)
        of = {"dx": (dx, 16 * EPS * off * rstd + format.result.rounding * np.abs(dx))}
        roundings = EPS * (8 + np.sqrt(problem.rows))
        for name, terms in (("dweight", dy * n), ("dbias", dy)):
            of[name] = terms.sum(0), roundings * np.abs(terms).sum(0)
        return {ARRAYS.index(name): ladder.Expected(*of[name]) for name in problem.outputs}


class SomeRows(RowBackward):
    """Some rows of a larger problem, and dx alone: the gradients of weight and bias are sums over all rows."""

    outputs = ("dx",)
