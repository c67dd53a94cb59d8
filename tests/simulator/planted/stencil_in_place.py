"""A stencil that writes its result over its input.

Each thread averages three neighbours in shared memory and stores the mean where the middle one was. A thread that comes
later averages means instead of values.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 32), (0, 31))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 128


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if 0 < t < 127:
        s[t] = (s[t - 1] + s[t] + s[t + 1]) / float32(3)  # <- here # <- and here
    cuda.syncthreads()
    y[t] = s[t]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    mean = s[t]
    if 0 < t < 127:
        mean = (s[t - 1] + s[t] + s[t + 1]) / float32(3)
    cuda.syncthreads()
    s[t] = mean
    cuda.syncthreads()
    y[t] = s[t]


def arguments():
    return np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
