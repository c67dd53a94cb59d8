"""A condition that is never true.

No thread has a number above the size of the array, so y stays as it was.
"""

import numpy as np

from labkit import cuda

FINDING = "unwritten"
ARRAY = "y"
WHO = ()
SANITIZER = None  # memory that nothing touches breaks no rule
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    if i > x.size:
        y[i] = x[i]  # <- here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
