"""Floating-point formats of at most 8 bits, whose codes are looked up in a table."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labkit.formats.kinds.format import Format
from labkit.formats.kinds.packing import codes_of, packed


@dataclass(frozen=True, eq=False, kw_only=True)
class MiniFloat(Format):
    """Sign, exponent and fraction in a few bits; an exponent of 0 is that of subnormal numbers.

    What is too large becomes infinity if the format has one, else its largest number. NaN becomes the code whose bits
    below the sign are all ones, which is the largest number of a format without NaN. (PTX ISA, `cvt`.)

    Attributes
    ----------
    exponent_bits
        Bits of the exponent, whose bias is half of their range.
    infinity
        Code of infinity, without its sign; None if there is none.
    nan
        Smallest code, without its sign, that is NaN; None if there is none.
    """

    exponent_bits: int
    infinity: int | None = None
    nan: int | None = None

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Numbers of the codes without a sign."""
        codes = np.arange(1 << self.bits - 1)
        exponent, fraction = np.divmod(codes, 1 << self.fraction_bits)
        fraction = fraction / (1 << self.fraction_bits)
        bias = (1 << self.exponent_bits - 1) - 1
        sizes = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
        sizes[codes == self.infinity] = np.inf
        if self.nan is not None:
            sizes[self.nan :] = np.nan
        return sizes

    @cached_property
    def _numbers(self) -> np.ndarray:
        """Numbers of all codes."""
        return np.concatenate([self._sizes, -self._sizes]).astype(np.float32)

    @cached_property
    def _steps(self) -> np.ndarray:
        """Finite sizes, by their codes, and what would follow the last in the place of infinity."""
        finite = self._sizes[np.isfinite(self._sizes)]
        return finite if self.infinity is None else np.append(finite, 2 * finite[-1] - finite[-2])

    @property
    def largest(self):
        return float(self._sizes[np.isfinite(self._sizes)][-1])

    def encode(self, values):
        values, steps, sign = np.asarray(values), self._steps, self.bits - 1
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            size = np.minimum(np.abs(values).astype(np.float64), steps[-1])
        above = np.searchsorted(steps, size).clip(1, len(steps) - 1)
        below = above - 1
        gap_below, gap_above = size - steps[below], steps[above] - size
        nearest = np.where((gap_below < gap_above) | ((gap_below == gap_above) & (below % 2 == 0)), below, above)
        codes = np.where(np.isnan(values), (1 << sign) - 1, nearest | np.signbit(values) << sign)
        return packed(codes.astype(self.dtype), self.bits)

    def multiplied(self, array):
        return self._numbers.take(codes_of(array, self.bits))

    def is_nan(self, array):
        return np.isnan(self.multiplied(array))
