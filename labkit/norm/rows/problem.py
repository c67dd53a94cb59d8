"""What every step of layer norm and of RMS norm computes: both take the statistics of a row, whatever its neighbours.

Layer norm is batch norm of a row in place of a channel, with a weight and a bias for each column. (Ba, Kiros and
Hinton, Layer Normalization, 2016, equations 2 to 4.) RMS norm leaves the mean where it is, and has no bias. (Zhang and
Sennrich, Root Mean Square Layer Normalization, 2019, equation 4.)
"""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.norm.problem import EPS, MOST

Kind = Literal["layer", "rms"]
KINDS = "layer", "rms"
HARD_MEAN, HARD_VARIANCE = 1e4, 1e-3
LARGE = 2**24  # elements, above which some of the rows tell the error
SOME = 64  # of them
ARRAYS = "x", "weight", "bias", "y", "mean", "rstd"
OF_LAYER = "bias", "mean"  # which RMS norm lacks


@dataclass(frozen=True)
class Rows(ladder.Problem):
    """Sizes of a norm of rows, forward or backward.

    Attributes
    ----------
    rows, columns
        Of the matrix; an array of more axes is one whose last axes make a row.
    kind
        "layer" takes the mean away from a row, "rms" does not.
    eps
        What is added to the variance, or to the mean square.
    hard
        Whether `operands` draws each row about 1e4 with a variance of 1e-3.

    Raises
    ------
    ValueError
        The sizes make no norm; the message says why, and what to do.
    """

    ARRAYS: ClassVar[tuple[str, ...]]  # in the order of operands

    rows: int
    columns: int
    kind: Kind = "layer"
    eps: float = 1e-5
    hard: bool = False

    def __post_init__(self):
        for name in ("rows", "columns"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not 1 <= size < MOST:
                raise ValueError(f"{name} is {size}, but it must be at least 1 and below {MOST}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        if self.kind not in KINDS:
            raise ValueError(f"there is no norm of kind {self.kind!r}: say layer or rms")
        if not isinstance(self.eps, Real) or not self.eps >= 0:
            raise ValueError(f"eps is {self.eps!r}: give a number that is not below 0")

    def __str__(self):
        return " ".join(filter(None, (f"{self.rows}x{self.columns} {self.kind}", "hard" * self.hard)))

    @property
    def called(self) -> str:
        """What it is called in sentences."""
        return f"{self.kind} norm"

    @property
    def is_centred(self) -> bool:
        """Whether the mean of a row is taken away from it."""
        return self.kind == "layer"

    @property
    def elements(self) -> int:
        """Of the matrix."""
        return self.rows * self.columns

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes: R for rows, C for columns."""
        return {name: {2: "RC", 1: "R" if name in ("mean", "rstd") else "C"}[len(n)] for name, n in self.shapes.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array that there is by its name."""
        matrix, of_row, of_column = (self.rows, self.columns), (self.rows,), (self.columns,)
        of = dict.fromkeys(self.ARRAYS, matrix) | {"mean": of_row, "rstd": of_row}
        of |= {name: of_column for name in of if name.endswith(("weight", "bias"))}
        return {name: of[name] for name in self.ARRAYS if self.is_centred or not self._is_of_layer(name)}

    def check(self, *arrays, **options) -> None:
        """As `labkit.ladder.Problem.check`, of those of `ARRAYS` in their order; what RMS norm lacks is None."""
        there = []
        for name, X in zip(self.ARRAYS, arrays, strict=True):
            if name in self.shapes:
                there.append(X)
            elif X is not None:
                raise ValueError(f"RMS norm has no {name}: give None in its place")
        super().check(*there, **options)

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the rows, the first and the last among them."""
        if self.elements <= LARGE:
            return operands
        *arrays, _ = operands
        some = np.unique(np.linspace(0, self.rows - 1, SOME).astype(int))
        axes = self.axes
        kept = [X[some] if axes.get(name, "").startswith("R") else X for name, X in zip(self.ARRAYS, arrays)]
        return *kept, replace(self, rows=len(some))

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """A random matrix in float32, whose rows have means and spreads of their own."""
        if self.hard:
            centre, spread = np.full(self.rows, HARD_MEAN), np.full(self.rows, np.sqrt(HARD_VARIANCE))
        else:
            centre, spread = rng.uniform(-1, 1, self.rows), rng.uniform(0.5, 2, self.rows)
        x = normal(rng, (self.rows, self.columns), FP32)
        x *= spread.astype(np.float32)[:, None]
        x += centre.astype(np.float32)[:, None]
        return x

    def statistics(
        self, x: Float64[np.ndarray, "R C"]
    ) -> tuple[Float64[np.ndarray, "R 1"], Float64[np.ndarray, "R 1"]]:
        """What is taken away from each row, and the variance about it."""
        centre = x.mean(1, keepdims=True) * self.is_centred
        return centre, ((x - centre) ** 2).mean(1, keepdims=True)

    @staticmethod
    def _is_of_layer(name):
        return name.endswith(OF_LAYER)


class RowForward(Rows):
    """y = (x - mean) * rstd * weight + bias for each row, with rstd = 1 / sqrt(variance + eps).

    RMS norm is y = x * rstd * weight, where the mean square stands in place of the variance; `bias` and `mean` are None
    then. Both statistics are of all values of a row, divided by their number, and are written for the backward pass.
    """

    ARRAYS = ARRAYS
    float32_arrays = "weight", "bias", "mean", "rstd"

    @property
    def flops(self) -> int:
        """Of each value: a square and its sum, two products; in layer norm two sums and a difference more."""
        return self.elements * (7 if self.is_centred else 4)

    def min_bytes(self, format: Format = FP32) -> int:
        """The matrix read and written once, and what there is of columns and rows."""
        beside = (self.columns + self.rows) * (2 if self.is_centred else 1)
        return 2 * self.elements * format.itemsize + beside * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """A random matrix, weights and biases; NaN where a step writes what was not there; and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        of = {name: rng.standard_normal(self.columns).astype(np.float32) for name in ("weight", "bias")}
        of["x"] = format.encode(self.drawn(rng))
        of["y"] = np.full((self.rows, self.columns), format.result.encode(np.nan), format.result.dtype)
        of |= {name: np.full(self.rows, np.nan, np.float32) for name in ("mean", "rstd")}
        return *(of[name] if name in self.shapes else None for name in self.ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The results in float64, and how far a step may be off them.

        A mean may be off by the distance of two neighbours in float32 and a millionth of the spread; a variance by 4
        millionths of itself, however far the mean is from zero. What they make of y follows from this, and each
        operation on the way costs a rounding.
        """
        x, weight, bias, *_, problem = operands  # which may be a part of this one
        x, weight = format.decode(np.asarray(x)), weight.astype(np.float64)
        bias = bias.astype(np.float64) if problem.is_centred else np.zeros(problem.columns)
        mean, variance = problem.statistics(x)
        rstd = 1 / np.sqrt(variance + problem.eps)
        off_mean = EPS * (np.abs(mean) + 8 * np.sqrt(variance)) * problem.is_centred
        off_rstd = rstd * EPS * (4 + 16 * variance * rstd**2)
        centred = (x - mean) * rstd * weight
        y = centred + bias
        off_y = 32 * EPS * (np.abs(centred) + np.abs(bias)) + np.abs(rstd * weight) * off_mean
        off_y += format.result.rounding * np.abs(y)
        of = {"y": (y, off_y), "mean": (mean[:, 0], off_mean[:, 0]), "rstd": (rstd[:, 0], off_rstd[:, 0])}
        return {ARRAYS.index(name): ladder.Expected(*of[name]) for name in of if name in problem.shapes}
