"""What every step of a softmax of rows computes.

The softmax of a row divides the exponential of each value by the sum of them all. It stays the same where a number is
taken away from the whole row, and without its maximum the exponentials cannot overflow. (Milakov and Gimelshein, Online
normalizer calculation for softmax, 2018, equations 1 and 3.)
"""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

EPS = float(np.finfo(np.float32).eps)
MOST = 2**31  # rows or columns, below which 32 bits count them
FARTHEST, SPREAD = 1e4, 100.0  # of hard rows: of their centre from zero, and about it
LARGE = 2**24  # elements, above which some of the rows tell the error
SOME = 64  # of them
LEAST_NORMAL = float(np.finfo(np.float32).tiny)  # below which a step may be off by all of a number


@dataclass(frozen=True)
class Rows(ladder.Problem):
    """Sizes of a softmax of rows, forward or backward.

    Attributes
    ----------
    rows, columns
        Of the matrix.
    hard
        Whether `operands` draws huge logits: each row about some number up to 1e4 with a spread of 100, where every
        third value but the last one is minus infinity, the first among them.

    Raises
    ------
    ValueError
        The sizes make no softmax; the message says why, and what to do.
    """

    ARRAYS: ClassVar[tuple[str, ...]]  # in the order of operands
    called = "softmax"

    rows: int
    columns: int
    hard: bool = False

    def __post_init__(self):
        for name in ("rows", "columns"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not 1 <= size < MOST:
                raise ValueError(f"{name} is {size}, but it must be at least 1 and below {MOST}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap

    def __str__(self):
        return f"{self.rows}x{self.columns}{' hard' * self.hard}"

    @property
    def elements(self) -> int:
        """Of a matrix."""
        return self.rows * self.columns

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        return dict.fromkeys(self.ARRAYS, (self.rows, self.columns))

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes: R for rows, C for columns."""
        return dict.fromkeys(self.ARRAYS, "RC")

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the rows, the first and the last among them."""
        if self.elements <= LARGE:
            return operands
        *arrays, _ = operands
        some = np.unique(np.linspace(0, self.rows - 1, SOME).astype(int))
        return *(X[some] for X in arrays), replace(self, rows=len(some))

    def logits(self, rng: np.random.Generator) -> np.ndarray:
        """A random matrix in float32."""
        x = normal(rng, (self.rows, self.columns), FP32)
        if self.hard:
            x *= np.float32(SPREAD)
            x += rng.uniform(-FARTHEST, FARTHEST, self.rows).astype(np.float32)[:, None]
            x[:, : self.columns - 1 : 3] = -np.inf
        return x

    def blank(self, format: Format) -> np.ndarray:
        """A matrix of NaN, in which what stays unwritten shows."""
        return np.full((self.rows, self.columns), format.result.encode(np.nan), format.result.dtype)


class Forward(Rows):
    """y = exp(x - maximum) / sum of exp(x - maximum), for each row.

    A value of minus infinity has y = 0. A row of nothing else has no softmax: 0 / 0, so that all of it becomes NaN, as
    in torch. So does a row that has a NaN or plus infinity anywhere.
    """

    ARRAYS = "x", "y"

    @property
    def flops(self) -> int:
        """Of each value: a difference, an exponential, its sum, and a product."""
        return 4 * self.elements

    def min_bytes(self, format: Format = FP32) -> int:
        """The matrix read and written once."""
        return 2 * self.elements * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random logits, NaN where a step writes, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        return format.encode(self.logits(rng)), self.blank(format), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64, and how far a step may be off them.

        How far a value is from the maximum is rounded, and so is its product with log2(e): the exponential is off by
        as many roundings as that distance, relative to itself. A sum costs a few more.
        """
        x, *_ = operands
        x = format.decode(np.asarray(x))
        with np.errstate(invalid="ignore"):
            apart = x - x.max(1, keepdims=True)
            y = np.exp(apart)
            y /= y.sum(1, keepdims=True)
            apart = np.where(y > 0, -apart, 0)
            off = EPS * (16 + np.sqrt(self.columns) / 8 + 2 * apart + 2 * (y * apart).sum(1, keepdims=True))
            return {1: ladder.Expected(y, y * (off + format.result.rounding) + LEAST_NORMAL)}


class Backward(Rows):
    """dx = y * (dy - sum of y * dy), for each row: the gradient of x, where dy is that of y = softmax(x).

    The slope of y[i] by x[j] is y[i] * ((i == j) - y[j]), so that x itself is not needed.
    """

    ARRAYS = "dy", "y", "dx"

    @property
    def flops(self) -> int:
        """Of each value: a product and its sum, a difference and a product."""
        return 4 * self.elements

    def min_bytes(self, format: Format = FP32) -> int:
        """Two matrices read, and one written."""
        return 3 * self.elements * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random gradients, the softmax of random logits, NaN where a step writes, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns, 1])
        y = self.logits(rng)
        y -= y.max(1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(1, keepdims=True)
        return normal(rng, (self.rows, self.columns), format), format.encode(y), self.blank(format), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64, and how far a step may be off them: each operation costs a rounding."""
        dy, y, *_ = operands
        dy, y = format.decode(np.asarray(dy)), format.decode(np.asarray(y))
        with np.errstate(invalid="ignore"):
            dx = y * (dy - (y * dy).sum(1, keepdims=True))
            off = EPS * (8 + np.sqrt(self.columns) / 8) * y * (np.abs(dy) + np.abs(y * dy).sum(1, keepdims=True))
            return {2: ladder.Expected(dx, off + format.result.rounding * np.abs(dx) + LEAST_NORMAL)}
