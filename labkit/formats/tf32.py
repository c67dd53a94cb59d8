"""TF32: stored as float32; tensor cores read the upper 19 bits, 10 of them of the fraction."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.float32 import FP32
from labkit.formats.kinds.of_numpy import NumPyFormat

UPPER_19_BITS = np.uint32(0xFFFFE000)


@dataclass(frozen=True, eq=False, kw_only=True)
class _TF32(NumPyFormat):
    """float32 in memory, truncated when it is multiplied."""

    def multiplied_values(self, array):
        return (np.asarray(array, np.float32).view(np.uint32) & UPPER_19_BITS).view(np.float32)


TF32 = _TF32(
    name="tf32",
    number=2,
    dtype=np.dtype(np.float32),
    fraction_bits=10,
    ptx_name="tf32",
    arithmetic="tfloat32 tensor",
    result=FP32,
    operand_loss=2.0**-10,
)
