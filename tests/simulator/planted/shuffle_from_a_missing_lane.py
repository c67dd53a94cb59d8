"""A shuffle in a branch that half of the warp does not take.

The mask names all 32 lanes, but only 16 make the call: the warp may wait for the rest for ever, or read what is not
there. The right kernel shuffles first and branches later.
"""

import numpy as np

from labkit import cuda

FINDING = "mask"
ALSO = "shuffle"
ARRAY = None
WHO = ((0, 0), (0, 16))
SANITIZER = None  # synccheck looks for it, and says nothing on an H100
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    t = cuda.threadIdx.x
    v = x[t]
    if t < 16:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, 16)  # <- here
    y[t] = v


@cuda.jit
def right(x, y):
    t = cuda.threadIdx.x
    v = x[t]
    upper = cuda.shfl_down_sync(0xFFFFFFFF, v, 16)
    if t < 16:
        v += upper
    y[t] = v


def arguments():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
