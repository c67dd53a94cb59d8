"""numba's types of what a launch is given."""

import numpy as np

from labkit import ptx


def argument_type(argument):
    from numba import types

    from labkit.ptx.tensor_copies.on_gpu import TensorMapType

    if isinstance(argument, ptx.TensorMap):
        return TensorMapType(len(argument.box))
    if getattr(argument, "ndim", 0):
        return types.Array(numba_type(argument.dtype), argument.ndim, "C")
    return types.float32 if isinstance(argument, np.float32) else types.int64


def numba_type(dtype):
    from numba.np.numpy_support import from_dtype

    return from_dtype(np.dtype(dtype))
