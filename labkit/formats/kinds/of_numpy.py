"""Floating-point formats that NumPy has."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.kinds.format import Format


@dataclass(frozen=True, eq=False, kw_only=True)
class NumPyFormat(Format):
    """A format that is a type of NumPy. Values out of range become infinity."""

    @property
    def largest(self):
        return float(np.finfo(self.dtype).max)

    def encode(self, values):
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.dtype)

    def multiplied_values(self, array):
        return np.asarray(array, np.float32)

    def decode(self, array):
        return array.astype(np.float64)

    def is_nan(self, array):
        return np.isnan(array)
