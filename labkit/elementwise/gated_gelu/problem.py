"""The problem of all kernels of GEGLU. (Shazeer, GLU Variants Improve Transformer, 2020, equation 6.)"""

import math
from dataclasses import dataclass

import numpy as np

from labkit import ladder
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder.inputs import normal

EPS = float(np.finfo(np.float32).eps)
ROUNDINGS = 8  # float32 roundings per element
MIN_BOUND = {FP32: 2.0**-126, BF16: 2.0**-126, FP16: 2.0**-25}  # absolute error allowed for results near 0
_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class GEGLU(ladder.Problem):
    """y = gelu(gate) * up for each element of two matrices, where gelu(g) = g * (1 + erf(g / sqrt(2))) / 2.

    Attributes
    ----------
    rows, columns
        Sizes of each matrix. Rows may have gaps between them, so that gate and up may be halves of one matrix.
    """

    message_name = "GEGLU"
    needs_c_order = False

    rows: int
    columns: int

    def __post_init__(self):
        for name in ("rows", "columns"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give 0 or more")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("gate", "up", "y"), (self.rows, self.columns))

    @property
    def axes(self) -> dict[str, str]:
        return dict.fromkeys(("gate", "up", "y"), "RC")  # R rows, C columns

    @property
    def flops(self) -> int:
        """Four FLOP per element: an erf counts as one, and divisions by constants as none."""
        return 4 * self.rows * self.columns

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of two matrices read and one written."""
        return 3 * self.rows * self.columns * format.itemsize

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return random gate and up, a y of NaN, and the problem."""
        rng, shape = np.random.default_rng([seed, self.rows, self.columns]), (self.rows, self.columns)
        y = np.full(shape, format.result.encode(np.nan), format.result.dtype)  # `result`: the format of outputs
        return normal(rng, shape, format), normal(rng, shape, format), y, self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the float64 result and its bound; 1 + erf cancels for negative gates: errors scale with gate * up."""
        gate, up = (format.decode(np.asarray(X)) for X in operands[:2])
        value = gate * (1 + _erf(gate / math.sqrt(2))) / 2 * up if gate.size else gate * up
        bound = ROUNDINGS * EPS * np.abs(gate * up) + format.result.rounding * np.abs(value) + MIN_BOUND[format.result]
        return {2: ladder.Expected(value, bound)}  # operand 2 is y
