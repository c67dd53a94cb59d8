"""Four neighbours of a float32 array, loaded and stored as four values.

A constant chooses how. `ALIGNED` is True where rows begin at multiples of 16 bytes: one access of 16 bytes. Where it is
False, as for `x[1:]`, every second element or rows of 101 elements, each element is an access of its own.
"""

import numpy as np

from labkit import cuda, ptx

ALIGNED = True


@cuda.jit(device=True)
def load_four(x, i):
    """Return the four elements of a vector that begin at i; past its end, the last one."""
    if ALIGNED:
        return ptx.load4(x, i)
    last = x.shape[0] - 1
    return x[i], x[min(i + 1, last)], x[min(i + 2, last)], x[min(i + 3, last)]


@cuda.jit(device=True)
def store_four(y, i, a, b, c, d):
    """Write four elements of a vector from i on."""
    if ALIGNED:
        ptx.store4(y, i, a, b, c, d)
    else:
        y[i], y[i + 1], y[i + 2], y[i + 3] = a, b, c, d


@cuda.jit(device=True)
def load_four_or_zeros(X, row, col):
    """Return the four elements of a row that begin at a column; past its end, zeros."""
    a = b = c = d = np.float32(0)
    if ALIGNED:
        if col < X.shape[1]:
            a, b, c, d = ptx.load4(X, (row, col))
    else:
        if col < X.shape[1]:
            a = X[row, col]
        if col + 1 < X.shape[1]:
            b = X[row, col + 1]
        if col + 2 < X.shape[1]:
            c = X[row, col + 2]
        if col + 3 < X.shape[1]:
            d = X[row, col + 3]
    return a, b, c, d


@cuda.jit(device=True)
def store_four_within(X, row, col, a, b, c, d):
    """Write four elements of a row from a column on, up to its end."""
    if ALIGNED:
        if col < X.shape[1]:
            ptx.store4(X, (row, col), a, b, c, d)
    else:
        if col < X.shape[1]:
            X[row, col] = a
        if col + 1 < X.shape[1]:
            X[row, col + 1] = b
        if col + 2 < X.shape[1]:
            X[row, col + 2] = c
        if col + 3 < X.shape[1]:
            X[row, col + 3] = d
