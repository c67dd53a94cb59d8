"""The problems of a softmax of rows and of its gradient.

The softmax of a row divides the exponential of each value by the sum of all. Subtracting a number from the whole row
does not change it. With the maximum subtracted the exponentials cannot overflow. (Milakov and Gimelshein, Online
normalizer calculation for softmax, 2018, equations 1 and 3.)
"""

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

import numpy as np

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.ladder.sizes import check_sizes

EPS32 = float(np.finfo(np.float32).eps)
MAX_CENTRE, SPREAD = 1e4, 100.0  # of hard rows: the largest centre, and the spread around it
CHECKED_ELEMENTS, CHECKED_ROWS = 2**24, 64  # larger problems are checked on a sample of rows
LEAST_NORMAL = float(np.finfo(np.float32).tiny)  # a kernel may flush smaller results to 0


@dataclass(frozen=True)
class RowProblem(ladder.Problem):
    """The base of the problems of softmax, forward and backward.

    Attributes
    ----------
    rows, columns
        Sizes of each matrix.
    hard
        Whether `operands` draws huge logits: each row around a number up to 1e4, with a spread of 100. Every third
        value from the first on, except the last one, is minus infinity.
    """

    ARRAYS: ClassVar[tuple[str, ...]]  # in the order of operands
    message_name = "softmax"

    rows: int
    columns: int
    hard: bool = False

    def __post_init__(self):
        check_sizes(self, rows=1, columns=1)

    def __str__(self):
        return f"{self.rows}x{self.columns}{' hard' * self.hard}"

    @property
    def elements(self) -> int:
        """Number of elements of a matrix."""
        return self.rows * self.columns

    @property
    def row_alignment(self) -> int:
        """Elements, a power of two up to 8, to a multiple of which every row begins."""
        return gcd(self.columns, 8)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        return dict.fromkeys(self.ARRAYS, (self.rows, self.columns))

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes: R for rows, C for columns."""
        return dict.fromkeys(self.ARRAYS, "RC")

    def checked_part(self, operands: tuple) -> tuple:
        """Return the operands of some rows of a large problem, the first and the last among them."""
        if self.elements <= CHECKED_ELEMENTS:
            return operands
        *arrays, _ = operands
        rows = np.unique(np.linspace(0, self.rows - 1, CHECKED_ROWS).astype(int))
        return *(X[rows] for X in arrays), replace(self, rows=len(rows))

    def draw_logits(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random float32 matrix."""
        x = normal(rng, (self.rows, self.columns), FP32)
        if self.hard:
            x *= np.float32(SPREAD)
            x += rng.uniform(-MAX_CENTRE, MAX_CENTRE, self.rows).astype(np.float32)[:, None]
            x[:, : self.columns - 1 : 3] = -np.inf
        return x

    def nan_matrix(self, format: Format) -> np.ndarray:
        """Return a matrix of NaN for results: an unwritten element stays NaN."""
        return np.full((self.rows, self.columns), format.result.encode(np.nan), format.result.dtype)


class Forward(RowProblem):
    """y = exp(x - maximum) / sum of exp(x - maximum), for each row.

    A value of minus infinity has y = 0. A row of only minus infinities becomes NaN (0 / 0), as in torch. So does a row
    with a NaN or plus infinity.
    """

    ARRAYS = "x", "y"

    @property
    def flops(self) -> int:
        """Four FLOP per value: a difference, an exponential, its sum, and a product."""
        return 4 * self.elements

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of the matrix read and written."""
        return 2 * self.elements * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random logits, NaN in y, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        return format.encode(self.draw_logits(rng)), self.nan_matrix(format), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 results and their bounds.

        The distance of a value from the maximum is rounded, and so is its product with log2(e). A distance of d
        therefore costs the exponential d roundings, relative to itself. A sum costs a few more.
        """
        x, *_ = operands
        x = format.decode(np.asarray(x))
        with np.errstate(invalid="ignore"):
            distance = x.max(1, keepdims=True) - x
            y = np.exp(-distance)
            y /= y.sum(1, keepdims=True)
            distance = np.where(y > 0, distance, 0)
            least = LEAST_NORMAL + format.result.underflow
            error = EPS32 * (16 + np.sqrt(self.columns) / 8 + 2 * distance + 2 * (y * distance).sum(1, keepdims=True))
            return {1: ladder.Expected(y, y * (error + format.result.rounding) + least)}  # operand 1 is y


class Backward(RowProblem):
    """dx = y * (dy - sum of y * dy), for each row: the gradient of x for a gradient dy of y = softmax(x).

    The derivative of y[i] by x[j] is y[i] * ((i == j) - y[j]), so that x itself is not needed.
    """

    ARRAYS = "dy", "y", "dx"

    @property
    def flops(self) -> int:
        """Four FLOP per value: a product and its sum, a difference and a product."""
        return 4 * self.elements

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of two matrices read and one written."""
        return 3 * self.elements * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random gradients, the softmax of random logits, NaN in dx, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns, 1])
        y = self.draw_logits(rng)
        y -= y.max(1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(1, keepdims=True)
        return normal(rng, (self.rows, self.columns), format), format.encode(y), self.nan_matrix(format), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 results and their bounds: each operation costs a rounding."""
        dy, y, *_ = operands
        dy, y = format.decode(np.asarray(dy)), format.decode(np.asarray(y))
        with np.errstate(invalid="ignore"):
            dx = y * (dy - (y * dy).sum(1, keepdims=True))
            bound = EPS32 * (8 + np.sqrt(self.columns) / 8) * y * (np.abs(dy) + np.abs(y * dy).sum(1, keepdims=True))
            bound += format.result.rounding * np.abs(dx) + LEAST_NORMAL + format.result.underflow
            return {2: ladder.Expected(dx, bound)}  # 2: dx
