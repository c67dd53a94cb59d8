"""A shared array is read before the other warps have filled it.

Each thread stores one element and reads its neighbour's. At the edge of a warp the neighbour runs in another warp,
which may be late: y then holds whatever was in shared memory before.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 31), (0, 32))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]  # <- and here
    y[t] = s[(t + 1) % 64]  # <- here


@cuda.jit
def right(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[(t + 1) % 64]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
