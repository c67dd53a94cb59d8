"""A tile is filled again while other warps still read it.

The barrier after the store is there; the one at the end of the loop is not. A fast warp comes round and overwrites
what a slow one is still adding up.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 0), (0, 63))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for tile in range(4):
        s[t] = x[tile * 64 + t]  # <- here
        cuda.syncthreads()
        total += s[63 - t]  # <- and here
    y[t] = total


@cuda.jit
def right(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for tile in range(4):
        s[t] = x[tile * 64 + t]
        cuda.syncthreads()
        total += s[63 - t]
        cuda.syncthreads()
    y[t] = total


def arguments():
    return np.arange(256, dtype=np.float32), np.zeros(64, np.float32)
