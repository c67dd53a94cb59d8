"""A barrier that only some threads of the block reach.

These threads wait for the others, which never come: the launch hangs, or goes on with half of the data.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "barrier"
ARRAY = None
WHO = ((0, 0), (0, 40))
SANITIZER = None  # synccheck looks for it, and says nothing on an H100
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < 40:
        cuda.syncthreads()  # <- here
        y[t] = s[39 - t]
    else:
        y[t] = s[t]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if t < 40:
        y[t] = s[39 - t]
    else:
        y[t] = s[t]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
