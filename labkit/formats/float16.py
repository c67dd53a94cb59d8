"""float16: IEEE 754's binary16."""

import numpy as np

from labkit.formats.kinds.of_numpy import NumPyFormat

FP16 = NumPyFormat(
    name="float16",
    number=1,
    dtype=np.dtype(np.float16),
    fraction_bits=10,
    underflow=2.0**-25,  # half of the least number above 0
    ptx_name="f16",
    arithmetic="float16 tensor",
    type_name="float16",
)
