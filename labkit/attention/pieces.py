"""Four neighbours of a row at once: by one access where rows are whole pieces of 16 bytes, else one by one."""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise


@cuda.jit(device=True)
def load_four(X, row, col):
    """Four elements of a row from a column on, zeros behind its end."""
    if col < X.shape[1]:
        return ptx.load4(X, (row, col))
    zero = np.float32(0)
    return zero, zero, zero, zero


@cuda.jit(device=True)
def store_four(X, row, col, a, b, c, d):
    """Writes four elements of a row from a column on, as far as it goes."""
    if col < X.shape[1]:
        ptx.store4(X, (row, col), a, b, c, d)


@cuda.jit(device=True)
def load_singly(X, row, col):
    a = b = c = d = np.float32(0)
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
def store_singly(X, row, col, a, b, c, d):
    if col < X.shape[1]:
        X[row, col] = a
    if col + 1 < X.shape[1]:
        X[row, col + 1] = b
    if col + 2 < X.shape[1]:
        X[row, col + 2] = c
    if col + 3 < X.shape[1]:
        X[row, col + 3] = d


@cache
def suited(kernel, whole: bool, **constants):
    """The kernel's copy that has these constants, for matrices whose rows are whole pieces or not."""
    singly = {} if whole else {"load_four": load_singly, "store_four": store_singly}
    return specialise(kernel, **singly, **constants)
