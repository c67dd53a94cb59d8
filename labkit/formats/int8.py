"""int8: -128 to 127; tensor cores accumulate products in int32."""

import numpy as np

from labkit.formats.int32 import INT32
from labkit.formats.kinds.integer import Integer

INT8 = Integer(
    name="int8",
    number=4,
    dtype=np.dtype(np.int8),
    fraction_bits=6,
    ptx_name="s8",
    arithmetic="int8 tensor",
    type_name="int8",
    result=INT32,
)
