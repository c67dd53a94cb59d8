"""The problems of layer norm and RMS norm: both normalise each row by its own statistics.

Layer norm is batch norm of a row in place of a channel, with a weight and a bias per column. (Ba, Kiros and Hinton,
Layer Normalization, 2016, equations 2 to 4.) RMS norm does not subtract the mean, and has no bias. (Zhang and Sennrich,
Root Mean Square Layer Normalization, 2019, equation 4.)
"""

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.ladder.sizes import check_sizes
from labkit.norm.images import EPS32, HARD_MEAN, HARD_VARIANCE, check_eps, nan_array

Kind = Literal["layer", "rms"]
KINDS = "layer", "rms"
CHECKED_ELEMENTS, CHECKED_ROWS = 2**24, 64  # larger problems are checked on a sample of rows
ARRAYS = "x", "weight", "bias", "y", "mean", "rstd"


@dataclass(frozen=True)
class RowProblem(ladder.Problem):
    """The base of layer norm's and RMS norm's problems, forward and backward.

    Attributes
    ----------
    rows, columns
        Sizes of the matrix; for an array of more axes, columns is the product of its normalised last axes.
    kind
        "layer" subtracts the mean of a row, "rms" does not.
    eps
        The summand of the variance, or of the mean square.
    hard
        Whether `operands` draws each row around 1e4 with a variance of 1e-3.
    """

    ARRAYS: ClassVar[tuple[str, ...]]  # in the order of operands

    rows: int
    columns: int
    kind: Kind = "layer"
    eps: float = 1e-5
    hard: bool = False

    def __post_init__(self):
        check_sizes(self, rows=1, columns=1)
        if self.kind not in KINDS:
            raise ValueError(f"there is no norm of kind {self.kind!r}: say layer or rms")
        check_eps(self.eps)

    def __str__(self):
        return " ".join(filter(None, (f"{self.rows}x{self.columns} {self.kind}", "hard" * self.hard)))

    @property
    def message_name(self) -> str:
        """The operation's name in messages."""
        return f"{self.kind} norm"

    @property
    def is_centred(self) -> bool:
        """True if the mean of a row is subtracted."""
        return self.kind == "layer"

    @property
    def elements(self) -> int:
        """Number of elements of the matrix."""
        return self.rows * self.columns

    @property
    def row_alignment(self) -> int:
        """Elements, a power of two up to 8, to a multiple of which every row begins."""
        return gcd(self.columns, 8)

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes: R for rows, C for columns."""
        vectors = {"mean": "R", "rstd": "R"}
        return {name: "RC" if len(n) == 2 else vectors.get(name, "C") for name, n in self.shapes.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name; RMS norm has neither means nor biases."""
        shapes = dict.fromkeys(self.ARRAYS, (self.rows, self.columns)) | dict.fromkeys(("mean", "rstd"), (self.rows,))
        shapes |= {name: (self.columns,) for name in shapes if name.endswith(("weight", "bias"))}
        return {name: shapes[name] for name in self.ARRAYS if self.is_centred or not name.endswith(("bias", "mean"))}

    def check(self, *arrays, **options) -> None:
        """Check the arrays of `ARRAYS`, in their order, by `labkit.ladder.Problem.check`; RMS norm lacks some: None."""
        present = []
        for name, X in zip(self.ARRAYS, arrays, strict=True):
            if name in self.shapes:
                present.append(X)
            elif X is not None:
                raise ValueError(f"RMS norm has no {name}: give None in its place")
        super().check(*present, **options)

    def checked_part(self, operands: tuple) -> tuple:
        """Return the operands of some rows of a large problem, the first and the last among them."""
        if self.elements <= CHECKED_ELEMENTS:
            return operands
        rows, axes = np.unique(np.linspace(0, self.rows - 1, CHECKED_ROWS).astype(int)), self.axes
        arrays = [X[rows] if axes.get(name, "").startswith("R") else X for name, X in zip(self.ARRAYS, operands)]
        return *arrays, replace(self, rows=len(rows))

    def draw_matrix(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random float32 matrix; each row has its own mean and spread."""
        if self.hard:
            mean, spread = np.full(self.rows, HARD_MEAN), np.full(self.rows, np.sqrt(HARD_VARIANCE))
        else:
            mean, spread = rng.uniform(-1, 1, self.rows), rng.uniform(0.5, 2, self.rows)
        x = normal(rng, (self.rows, self.columns), FP32)
        x *= spread.astype(np.float32)[:, None]
        x += mean.astype(np.float32)[:, None]
        return x

    def row_statistics(
        self, x: Float64[np.ndarray, "R C"]
    ) -> tuple[Float64[np.ndarray, "R 1"], Float64[np.ndarray, "R 1"]]:
        """Return the mean of each row, 0 in RMS norm, and the variance around it."""
        mean = x.mean(1, keepdims=True) * self.is_centred
        return mean, ((x - mean) ** 2).mean(1, keepdims=True)


class RowForward(RowProblem):
    """y = (x - mean) * rstd * weight + bias for each row, with rstd = 1 / sqrt(variance + eps).

    RMS norm is y = x * rstd * weight, with the mean square in place of the variance; `bias` and `mean` are None. Both
    statistics are divided by the number of columns, and are written for the backward pass.
    """

    ARRAYS = ARRAYS
    float32_arrays = "weight", "bias", "mean", "rstd"

    @property
    def flops(self) -> int:
        """Four FLOP per value: a square and its sum, two products; layer norm has two sums and a difference more."""
        return self.elements * (7 if self.is_centred else 4)

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of the matrix read and written, and of the arrays of columns and of rows."""
        vectors = (self.columns + self.rows) * (2 if self.is_centred else 1)
        return 2 * self.elements * format.itemsize + vectors * FP32.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return a random matrix, weights and biases, NaN in outputs, and the problem."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        arrays = {name: rng.standard_normal(self.columns).astype(np.float32) for name in ("weight", "bias")}
        arrays["x"] = format.encode(self.draw_matrix(rng))
        arrays["y"] = nan_array((self.rows, self.columns), format)
        arrays |= {name: nan_array((self.rows,), FP32) for name in ("mean", "rstd")}
        return *(arrays[name] if name in self.shapes else None for name in self.ARRAYS), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 results and their bounds.

        The bound of a mean is the distance of two neighbours in float32 and a millionth of the spread. That of a
        variance is 4 millionths of itself, however far the mean is from zero. The bound of y follows from these, plus a
        rounding per operation.
        """
        x, weight, bias, *_, problem = operands  # the problem may be a sample of this one's rows
        x, weight = format.decode(np.asarray(x)), weight.astype(np.float64)
        bias = bias.astype(np.float64) if problem.is_centred else np.zeros(problem.columns)
        mean, variance = problem.row_statistics(x)
        rstd = 1 / np.sqrt(variance + problem.eps)
        mean_bound = EPS32 * (np.abs(mean) + 8 * np.sqrt(variance)) * problem.is_centred
        rstd_bound = rstd * EPS32 * (4 + 16 * variance * rstd**2)
        centred = (x - mean) * rstd * weight
        y = centred + bias
        y_bound = 32 * EPS32 * (np.abs(centred) + np.abs(bias)) + np.abs(rstd * weight) * mean_bound
        y_bound += format.result.rounding * np.abs(y) + format.result.underflow
        results = {"y": (y, y_bound), "mean": (mean[:, 0], mean_bound[:, 0]), "rstd": (rstd[:, 0], rstd_bound[:, 0])}
        return {ARRAYS.index(name): ladder.Expected(*results[name]) for name in results if name in problem.shapes}
