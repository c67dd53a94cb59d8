"""Accesses to words of a matrix with bounds checks: zeros are read outside of it."""

import numpy as np

from labkit import cuda, ptx


@cuda.jit(device=True)
def load_four(X, row, word):
    """Return four neighbouring words of a row, which are all inside of the matrix or all outside."""
    if row < X.shape[0] and word < X.shape[1]:
        return ptx.load4(X, (row, word))
    zero = np.uint32(0)
    return zero, zero, zero, zero


@cuda.jit(device=True)
def copy_rows(tiles, stage, X, first_row, word, thread, threads):
    """Begin the block's copies of rows of a matrix, 32 words each from `word` on, to a swizzled tile."""
    row, piece = thread // 8, thread % 8
    for i in range(tiles.shape[1] * 8 // threads):
        y = row + i * (threads // 8)
        inside = 16 if first_row + y < X.shape[0] and word + piece * 4 < X.shape[1] else 0
        ptx.cp_async(tiles, (stage, y, (piece ^ y % 8) * 4), X, (first_row + y, word + piece * 4), 16, inside)


@cuda.jit(device=True)
def store_word(X, row, word, value):
    """Store a word, unless it is outside of the matrix."""
    if row < X.shape[0] and word < X.shape[1]:
        X[row, word] = value
