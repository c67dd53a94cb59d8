"""float32: IEEE 754's binary32."""

import numpy as np

from labkit.formats.kinds.of_numpy import NumPyFormat

FP32 = NumPyFormat(
    name="float32", number=5, dtype=np.dtype(np.float32), fraction_bits=23, arithmetic="float32", type_name="float32"
)
