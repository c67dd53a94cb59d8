"""Floating-point formats of at most 8 bits, decoded by a table."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.formats.kinds.format import Format
from labkit.formats.kinds.packing import pack, unpack


@dataclass(frozen=True, eq=False, kw_only=True)
class MiniFloat(Format):
    """Sign, exponent and fraction in a few bits; numbers with exponent 0 are subnormal.

    Values out of range become infinity if the format has one, else its largest number. NaN becomes the code whose bits
    below the sign are all ones, which is the largest number of a format without NaN. (PTX ISA, `cvt`.)

    Attributes
    ----------
    exponent_bits
        Bits of the exponent; its bias is half of its range.
    infinity
        Code of infinity, without its sign; None if there is none.
    nan
        Smallest code, without its sign, that is NaN; None if there is none.
    """

    exponent_bits: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def _bias(self) -> int:
        return (1 << self.exponent_bits - 1) - 1

    @cached_property
    def _magnitudes(self) -> np.ndarray:
        """Values of all codes without the sign."""
        codes = np.arange(1 << self.bits - 1)
        exponent, fraction = np.divmod(codes, 1 << self.fraction_bits)
        fraction = fraction / (1 << self.fraction_bits)
        bias = self._bias
        values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
        values[codes == self.infinity] = np.inf
        if self.nan is not None:
            values[self.nan :] = np.nan
        return values

    @cached_property
    def _values(self) -> np.ndarray:
        """Values of all codes."""
        return np.concatenate([self._magnitudes, -self._magnitudes]).astype(np.float32)

    @cached_property
    def largest(self):
        return float(self._magnitudes[np.isfinite(self._magnitudes)][-1])

    def encode(self, values):
        values = np.asarray(values)
        is_nan, sign_bit, min_exponent = np.isnan(values), self.bits - 1, 1 - self._bias
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            size = np.where(is_nan, 0, np.minimum(np.abs(values).astype(np.float64), 2 * self.largest))
        exponent = np.frexp(np.maximum(size, 2.0**min_exponent))[1] - 1
        # codes grow with the fraction, and then with the exponent
        codes = (exponent - min_exponent << self.fraction_bits) + np.rint(np.ldexp(size, self.fraction_bits - exponent))
        max_code = np.count_nonzero(np.isfinite(self._magnitudes)) - (self.infinity is None)
        codes = np.where(is_nan, (1 << sign_bit) - 1, np.minimum(codes, max_code)).astype(self.dtype)
        return pack(codes | (np.signbit(values) & ~is_nan).astype(self.dtype) << self.dtype.type(sign_bit), self.bits)

    def multiplied_values(self, array):
        return self._values.take(unpack(array, self.bits))

    def is_nan(self, array):
        return np.isnan(self.multiplied_values(array))
