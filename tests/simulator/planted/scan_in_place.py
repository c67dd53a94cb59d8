"""A prefix sum that adds while others still read.

In each round thread t adds the element k places to its left. There is a barrier between the rounds, but none
between reading and writing inside a round, so an element may be added to before it is read.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 32), (0, 31))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 1
    while k < 64:
        if t >= k:
            s[t] += s[t - k]  # <- here # <- and here
        cuda.syncthreads()
        k *= 2
    y[t] = s[t]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 1
    while k < 64:
        total = s[t]
        if t >= k:
            total += s[t - k]
        cuda.syncthreads()
        s[t] = total
        cuda.syncthreads()
        k *= 2
    y[t] = s[t]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
