"""A thread's own array that is added to before it was set to zero.

Local memory is not cleared: the sum starts from whatever was there.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "uninitialised"
ARRAY = "sums"
WHO = ((0, 0),)
SANITIZER = None  # initcheck watches global memory alone
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    sums = cuda.local.array(2, float32)
    i = cuda.grid(1)
    for k in range(8):
        sums[k % 2] += x[i]  # <- here
    y[i] = sums[0] - sums[1]


@cuda.jit
def right(x, y):
    sums = cuda.local.array(2, float32)
    i = cuda.grid(1)
    sums[0] = 0
    sums[1] = 0
    for k in range(8):
        sums[k % 2] += x[i]
    y[i] = sums[0] - sums[1]


def arguments():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
