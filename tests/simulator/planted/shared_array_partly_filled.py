"""Shared memory that not every thread filled.

The guard that keeps the load inside x also skips the store, and the reader gets what an earlier block left there.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "uninitialised"
ARRAY = "s"
WHO = ((0, 40),)
SANITIZER = None  # initcheck watches global memory alone
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < x.size:
        s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[t]  # <- here


@cuda.jit
def right(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t] if t < x.size else float32(0)
    cuda.syncthreads()
    y[t] = s[t]


def arguments():
    return np.arange(40, dtype=np.float32), np.zeros(64, np.float32)
