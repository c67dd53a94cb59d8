"""`<=` where `<` was meant.

An array of 100 elements has no number 100: one thread writes behind its end, into whatever lies there.
"""

import numpy as np

from labkit import cuda

FINDING = "bounds"
ARRAY = "y"
WHO = ((1, 36),)
SANITIZER = "memcheck"
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(y):
    i = cuda.grid(1)
    if i <= y.size:
        y[i] = i  # <- here


@cuda.jit
def right(y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = i


def arguments():
    return (np.zeros(100, np.float32),)
