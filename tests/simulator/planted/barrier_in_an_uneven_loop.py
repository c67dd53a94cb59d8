"""A barrier in a loop that some threads leave earlier.

Thread t makes t % 4 + 1 rounds, so in the second round a quarter of the block is missing at the barrier.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "barrier"
ARRAY = None
WHO = ((0, 1), (0, 0))
SANITIZER = None  # synccheck looks for it, and says nothing on an H100
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    t = cuda.threadIdx.x
    total = float32(0)
    for k in range(t % 4 + 1):
        total += x[t] * float32(k)
        cuda.syncthreads()  # <- here
    y[t] = total


@cuda.jit
def right(x, y):
    t = cuda.threadIdx.x
    total = float32(0)
    for k in range(4):
        if k < t % 4 + 1:
            total += x[t] * float32(k)
        cuda.syncthreads()
    y[t] = total


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
