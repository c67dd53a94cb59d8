"""A sum that is added to an array which is never set to zero.

`cuda.device_array` reserves memory and leaves in it whatever was there. The first `+=` reads that.
"""

import numpy as np

from labkit import cuda

FINDING = "uninitialised"
ARRAY = "sums"
WHO = ((0, 0),)
SANITIZER = "initcheck"
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(x, sums):
    i = cuda.grid(1)
    sums[i] += x[i]  # <- here


@cuda.jit
def right(x, sums):
    i = cuda.grid(1)
    sums[i] = x[i]


def arguments():
    return np.ones(128, np.float32), cuda.device_array(128, np.float32)
