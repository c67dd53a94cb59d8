"""numba's types of the arguments of a launch, for compiling without a GPU."""

import numpy as np

from labkit import ptx


def argument_type(argument):
    """numba's type of an argument."""
    from numba import types

    from labkit.ptx.on_gpu.tensor_copies import TensorMapType

    if isinstance(argument, ptx.TensorMap):
        return TensorMapType(len(argument.box))
    if isinstance(argument, tuple):
        kinds, form = tuple(map(argument_type, argument)), type(argument)
        alike = len(set(kinds)) == 1
        return types.NamedUniTuple(kinds[0], len(kinds), form) if alike else types.NamedTuple(kinds, form)
    if getattr(argument, "ndim", 0):
        return types.Array(numba_type(argument.dtype), argument.ndim, "C")
    return types.float32 if isinstance(argument, np.float32) else types.int64


def numba_type(dtype):
    """numba's type of an element."""
    from numba.np.numpy_support import from_dtype

    return from_dtype(np.dtype(dtype))
