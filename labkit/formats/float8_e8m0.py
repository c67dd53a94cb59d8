"""float8_e8m0: powers of two, 2**-127 to 2**127, without a sign: scales of blocks."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.kinds.format import Format

BIAS, NAN = 127, 255
NUMBERS = np.array([*(2.0 ** (code - BIAS) for code in range(NAN)), np.nan], np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class _PowersOfTwo(Format):
    """Exponents with a bias. What is out of range becomes the nearest power, and what is negative becomes NaN."""

    @property
    def largest(self):
        return 2.0**BIAS

    def encode(self, values):
        values = np.asarray(values, np.float64)
        share, exponent = np.frexp(np.where(values > 0, values, 0.0))  # a share of 1/2 is a power of two
        below = exponent - 1 + BIAS
        codes = below + ((share > 0.75) | (share == 0.75) & (below % 2 == 1))
        codes = np.where(values == 0, 0, np.where(np.isposinf(values), NAN - 1, codes)).clip(0, NAN - 1)
        return np.where((values < 0) | np.isnan(values), NAN, codes).astype(self.dtype)

    def multiplied(self, array):
        return NUMBERS.take(array)

    def is_nan(self, array):
        return array == NAN


E8M0 = _PowersOfTwo(name="float8_e8m0", dtype=np.dtype(np.uint8), fraction_bits=0, type_name="float8_e8m0fnu")
