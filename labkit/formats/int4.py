"""int4: -8 to 7; two numbers per byte, and a float16 scale per 32 numbers."""

import numpy as np

from labkit.formats.float16 import FP16
from labkit.formats.int32 import INT32
from labkit.formats.kinds.block_scales import BlockScales
from labkit.formats.kinds.integer import Integer

INT4 = Integer(
    name="int4",
    dtype=np.dtype(np.uint8),
    bits=4,
    fraction_bits=2,
    result=INT32,
    block_scales={"group": BlockScales(block=32, format=FP16)},
)
