"""float8_e5m2: the upper byte of a float16, with its infinities and its NaN; the largest number is 57344."""

import numpy as np

from labkit.formats.bfloat16 import BF16
from labkit.formats.kinds.mini_float import MiniFloat

E5M2 = MiniFloat(
    name="float8_e5m2",
    dtype=np.dtype(np.uint8),
    exponent_bits=5,
    fraction_bits=2,
    infinity=0x7C,
    nan=0x7D,
    type_name="float8_e5m2",
    result=BF16,
)
