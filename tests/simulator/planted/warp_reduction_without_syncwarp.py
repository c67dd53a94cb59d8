"""A reduction inside one warp that counts on its lanes to run in step.

Since Volta they need not: without `cuda.syncwarp()` a lane may add an element before its owner has stored it.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "s"
WHO = ((0, 0), (0, 8))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    k = 16
    while k > 0:
        if t < k:
            s[t] += s[t + k]  # <- here # <- and here
        k //= 2
    if t == 0:
        y[0] = s[0]


@cuda.jit
def right(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    k = 16
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncwarp()
        k //= 2
    if t == 0:
        y[0] = s[0]


def arguments():
    return np.ones(32, np.float32), np.zeros(1, np.float32)
