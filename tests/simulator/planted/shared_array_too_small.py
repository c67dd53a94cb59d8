"""A shared tile that has no room for its halo.

64 threads shift by one place, which takes 65 elements. The last thread stores behind the tile.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "bounds"
ARRAY = "s"
WHO = ((0, 63),)
SANITIZER = "memcheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t + 1] = x[t]  # <- here
    if t == 0:
        s[0] = x[0]
    cuda.syncthreads()
    y[t] = s[t]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(65, float32)
    t = cuda.threadIdx.x
    s[t + 1] = x[t]
    if t == 0:
        s[0] = x[0]
    cuda.syncthreads()
    y[t] = s[t]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
