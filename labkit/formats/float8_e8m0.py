"""float8_e8m0: powers of two from 2**-127 to 2**127, without a sign, for scales of blocks."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.kinds.format import Format

BIAS, NAN = 127, 255  # of the exponent; code of NaN
NUMBERS = np.array([*(2.0 ** (code - BIAS) for code in range(NAN)), np.nan], np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class _PowersOfTwo(Format):
    """Biased exponents. Values out of range become the nearest power, and negative values become NaN."""

    @property
    def largest(self):
        return 2.0**BIAS

    def encode(self, values):
        values = np.asarray(values, np.float64)
        fraction, exponent = np.frexp(np.where(values > 0, values, 0.0))  # 1/2 for a power of two
        lower_code = exponent - 1 + BIAS
        codes = lower_code + ((fraction > 0.75) | (fraction == 0.75) & (lower_code % 2 == 1))  # ties to even codes
        codes = np.where(values == 0, 0, np.where(np.isposinf(values), NAN - 1, codes)).clip(0, NAN - 1)
        return np.where((values < 0) | np.isnan(values), NAN, codes).astype(self.dtype)

    def multiplied_values(self, array):
        return NUMBERS.take(array)

    def is_nan(self, array):
        return array == NAN


E8M0 = _PowersOfTwo(name="float8_e8m0", dtype=np.dtype(np.uint8), fraction_bits=0, type_name="float8_e8m0fnu")
