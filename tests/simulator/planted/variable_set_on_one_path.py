"""A variable that only one branch sets.

Where the condition fails, nothing was assigned: the compiler takes any value it likes.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "uninitialised"
ARRAY = None
WHO = ((0, 0),)
SANITIZER = None  # a register is no memory
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    if x[i] > 0:
        twice = x[i] * float32(2)
    y[i] = twice  # <- here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    twice = float32(0)
    if x[i] > 0:
        twice = x[i] * float32(2)
    y[i] = twice


def arguments():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
