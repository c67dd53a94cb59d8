"""A block size that is no multiple of 32.

100 threads take four warps, and the last one runs with 28 of its lanes empty, in every block.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "idle-lanes"
ARRAY = None
WHO = ()
SANITIZER = None  # slow, but right
GRID, BLOCK = 4, 100
RIGHT_GRID, RIGHT_BLOCK = 4, 128


@cuda.jit  # <- here
def wrong(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * float32(2)


right = cuda.jit(wrong.py_func)


def arguments():
    return np.ones(400, np.float32), np.zeros(400, np.float32)
