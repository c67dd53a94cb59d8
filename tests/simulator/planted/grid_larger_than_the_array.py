"""A kernel without a guard, launched with more threads than there are elements.

A grid is whole blocks: 2 blocks of 64 are 128 threads, and 28 of them have no element.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "bounds"
ARRAY = "x"
WHO = ((1, 36),)
SANITIZER = "memcheck"
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    y[i] = float32(2) * x[i]  # <- here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = float32(2) * x[i]


def arguments():
    return np.ones(100, np.float32), np.zeros(100, np.float32)
