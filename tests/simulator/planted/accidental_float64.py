"""A Python number makes the whole expression double.

`0.5` is float64, so float32 data is widened, multiplied and rounded back, at a fraction of the speed.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "float64"
ARRAY = None
WHO = ()
SANITIZER = None  # slow, but right
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * 0.5  # <- here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * float32(0.5)


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
