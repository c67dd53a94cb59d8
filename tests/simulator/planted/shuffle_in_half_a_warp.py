"""A shuffle from lanes that a block of 48 threads does not have.

Its last warp has 16 threads. They read the lanes 16 to 31 above them, and there are none: the sum takes in whatever
the register holds.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "shuffle"
ARRAY = None
WHO = ((0, 32),)
SANITIZER = None  # the mask names only lanes that are there
GRID, BLOCK = 1, 48
RIGHT_GRID, RIGHT_BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    t = cuda.threadIdx.x
    v = x[t]
    v += cuda.shfl_xor_sync(cuda.activemask(), v, 16)  # <- here
    y[t] = v


@cuda.jit
def right(x, y):
    t = cuda.threadIdx.x
    v = x[t] if t < 48 else float32(0)
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, 16)
    if t < 48:
        y[t] = v


def arguments():
    return np.arange(48, dtype=np.float32), np.zeros(48, np.float32)
