"""A loop that is one longer than the thread's own array.

The compiler may keep the array in registers, where the extra element is anyone's value.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "bounds"
ARRAY = "mine"
WHO = ((0, 0),)
SANITIZER = None  # the array lives in registers, or inside a larger stack frame
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    mine = cuda.local.array(4, float32)
    i = cuda.grid(1)
    for k in range(5):
        mine[k] = x[i] * float32(k)  # <- here
    y[i] = mine[3]


@cuda.jit
def right(x, y):
    mine = cuda.local.array(4, float32)
    i = cuda.grid(1)
    for k in range(4):
        mine[k] = x[i] * float32(k)
    y[i] = mine[3]


def arguments():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
