"""Integers in two's complement."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.kinds.format import Format
from labkit.formats.kinds.packing import pack, unpack


@dataclass(frozen=True, eq=False, kw_only=True)
class Integer(Format):
    """Integers of a number of bits. Values out of range saturate, and NaN becomes 0."""

    accumulator_dtype = np.dtype(np.int32)

    @property
    def largest(self):
        return float(2 ** (self.bits - 1) - 1)

    def encode(self, values):
        whole = np.nan_to_num(np.rint(np.asarray(values, np.float64)), posinf=np.inf, neginf=-np.inf)
        whole = whole.clip(-self.largest - 1, self.largest).astype(np.int64)
        return pack((whole & (1 << self.bits) - 1).astype(f"u{self.itemsize}"), self.bits).view(self.dtype)

    def multiplied_values(self, array):
        whole = unpack(array, self.bits).astype(np.int32)
        half = 1 << self.bits - 1
        return whole if self.numbers_per_element == 1 else (whole ^ half) - half

    def is_nan(self, array):
        return np.zeros(unpack(array, self.bits).shape, np.bool_)
