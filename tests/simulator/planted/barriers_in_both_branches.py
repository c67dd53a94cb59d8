"""Two barriers in the place of one.

Each half of a warp has its own `cuda.syncthreads()`, and each waits at its own line: no line is reached by the whole
block.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "barrier"
ARRAY = None
WHO = ((0, 0), (0, 16))
SANITIZER = "synccheck"
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if t < 16:
        s[t] = x[t]
        cuda.syncthreads()  # <- here
    else:
        s[t] = -x[t]
        cuda.syncthreads()  # <- and here
    y[t] = s[t]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if t < 16:
        s[t] = x[t]
    else:
        s[t] = -x[t]
    cuda.syncthreads()
    y[t] = s[t]


def arguments():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
