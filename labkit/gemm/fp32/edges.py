"""Loads of four neighbours of a row at once, or one by one at the matrix's edges and in unaligned rows."""

import numpy as np

from labkit import cuda, ptx


@cuda.jit(device=True)
def load_four(X, row, col, whole):
    """Return `X[row, col:col + 4]`, with zeros outside of X; by one 128-bit load if `whole`: inside and aligned."""
    if whole:
        return ptx.load4(X, (row, col))
    return load_one(X, row, col), load_one(X, row, col + 1), load_one(X, row, col + 2), load_one(X, row, col + 3)


@cuda.jit(device=True)
def load_one(X, row, col):
    """Return `X[row, col]`, or zero outside of X."""
    return X[row, col] if row < X.shape[0] and col < X.shape[1] else np.float32(0)
