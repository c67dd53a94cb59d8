"""int32: accumulators of narrower integers."""

import numpy as np

from labkit.formats.kinds.integer import Integer

INT32 = Integer(name="int32", dtype=np.dtype(np.int32), fraction_bits=30, type_name="int32")
