"""float8_e4m3: 4 bits of exponent, 3 of fraction, no infinity, and one NaN per sign; the largest number is 448."""

import numpy as np

from labkit.formats.bfloat16 import BF16
from labkit.formats.kinds.mini_float import MiniFloat

E4M3_NAN = np.uint8(0x7F)
E4M3_LOSS = 2.0**-18  # Hopper's accumulators keep 13 bits below the largest summand

E4M3 = MiniFloat(
    name="float8_e4m3",
    number=3,
    dtype=np.dtype(np.uint8),
    exponent_bits=4,
    fraction_bits=3,
    nan=0x7F,
    ptx_name="e4m3",
    arithmetic="float8 tensor",
    type_name="float8_e4m3fn",
    result=BF16,
    sum_loss=E4M3_LOSS,
)
E4M3_MAX = E4M3.largest
