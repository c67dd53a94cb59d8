"""A kernel that counts rows and columns, launched with numbers in place of pairs.

There is one column of threads, so that only the first column of the matrix is scaled.
"""

import numpy as np

from labkit import cuda

FINDING = "one-axis"
ARRAY = None
WHO = ()
SANITIZER = None  # no rule is broken
GRID, BLOCK = 2, 32
RIGHT_GRID, RIGHT_BLOCK = (2, 2), (8, 8)


@cuda.jit  # <- here
def wrong(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] *= np.float32(2)


@cuda.jit
def right(x):
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] *= np.float32(2)


def arguments():
    return (np.ones((16, 16), np.float32),)
