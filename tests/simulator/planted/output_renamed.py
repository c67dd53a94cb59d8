"""The result is given the output's name instead of going into the output.

`y = ...` makes a new variable of the thread. The array is as it was.
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
    y = x[i] * x[i]  # <- here  # noqa: F841


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * x[i]


def arguments():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
