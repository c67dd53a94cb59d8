"""A tree reduction that does not wait between its rounds.

The barrier stands after the loop instead of in it: a warp adds partial sums that another warp has not made yet.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 0), (0, 32))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 128


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 64
    while k > 0:
        if t < k:
            s[t] += s[t + k]  # <- here # <- and here
        k //= 2
    cuda.syncthreads()
    if t == 0:
        y[0] = s[0]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 64
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        y[0] = s[0]


def arguments():
    return np.ones(128, np.float32), np.zeros(1, np.float32)
