"""The left neighbour of the first element.

numba counts `x[-1]` from the end, as Python does: the first mean silently mixes in the last element.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "negative-index"
ARRAY = "x"
WHO = ((0, 0),)
SANITIZER = None  # the element exists
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    y[i] = (x[i - 1] + x[i]) * float32(0.5)  # <- here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    left = x[i - 1] if i > 0 else x[i]
    y[i] = (left + x[i]) * float32(0.5)


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
