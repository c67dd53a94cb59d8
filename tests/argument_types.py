"""numba's types of what a launch is given."""

import numpy as np

from labkit import ptx


def argument_type(argument):
    from numba import types

    if isinstance(argument, ptx.TensorMap | ptx.PixelMap):
        return argument._numba_type_
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types(tuple(map(argument_type, argument)), type(argument))
    if shape := getattr(argument, "shape", ()):
        return types.Array(numba_type(argument.dtype), len(shape), "C")
    return numba_type(argument.dtype) if isinstance(argument, np.generic) else types.int64


def numba_type(dtype):
    from numba.np.numpy_support import from_dtype

    return from_dtype(np.dtype(dtype))
