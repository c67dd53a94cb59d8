"""Tiles in shared memory: copies of a stage, and a thread's products of two tiles.

A tile is stored as its operand: rows that run along k (K-major), or rows of one k each (MN-major). Lanes load four
neighbours along the rows and four along k, from either kind. In a K-major tile groups of four k are swizzled by the
row, so that lanes on neighbouring groups of rows read different banks.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.simt.constants import K_MAJOR, LANES_X, LANES_Y, LEFT_MAJOR, RIGHT_MAJOR, THREADS, TM, TN


@cuda.jit(device=True)
def swizzle(row, k):
    """Return the column of a K-major tile at which k is stored."""
    return k ^ row // 4 % 8 * 4


@cuda.jit(device=True)
def copy_tile(tile, stage, major, width, X, first, start, end, t):
    """Begin this thread's copies of a tile of the matrix X: rows from `first` on, k from `start` to `end`.

    Zeros are written for elements outside.
    """
    lines, length = np.uint32(tile.shape[1]), np.uint32(tile.shape[2])
    if major == K_MAJOR:
        top, left, bottom, right = first, start, np.uint32(X.shape[0]), end
    else:
        top, left, bottom, right = start, first, end, np.uint32(X.shape[1])
    vectors = length // width  # of a line
    for n in range(0, lines * vectors, THREADS):
        i = np.uint32(t + n)
        if lines * vectors % THREADS == 0 or i < lines * vectors:
            line, place = np.uint32(i // vectors), np.uint32(i % vectors * width)
            row, col = np.uint32(top + line), np.uint32(left + place)
            column = swizzle(line, place) if major == K_MAJOR else place
            inside = min(np.uint32(right - col), width) if row < bottom and col < right else np.uint32(0)
            if width == 4:
                ptx.cp_async(tile, (stage, line, column), X, (row, col), 16, inside * np.uint32(4))
            else:
                ptx.cp_async(tile, (stage, line, column), X, (row, col), 4, inside * np.uint32(4))


@cuda.jit(device=True)
def load_four(values, i, tile, stage, major, row, k):
    """Load an operand's elements of four rows and four k: `values[n, i + r]` is that of k + n and row + r."""
    if major == K_MAJOR:
        for r in range(4):
            column = swizzle(row, k)
            values[0, i + r], values[1, i + r], values[2, i + r], values[3, i + r] = ptx.load4(
                tile, (stage, row + r, column)
            )
    else:
        for n in range(4):
            values[n, i], values[n, i + 1], values[n, i + 2], values[n, i + 3] = ptx.load4(tile, (stage, k + n, row))


@cuda.jit(device=True)
def load_right(b, tile, stage, x, k):
    """Load this thread's columns of the right operand at four k."""
    for j in range(0, TN, 4):
        load_four(b, j, tile, stage, RIGHT_MAJOR, x + np.uint32(j * LANES_X), k)


@cuda.jit(device=True)
def multiply(acc, tile, stage, y, k, b):
    """Add the products of this thread's rows of the left operand and its columns `b` of the right one at four k."""
    a = cuda.local.array((4, 4), np.float32)
    for i in range(0, TM, 4):
        load_four(a, 0, tile, stage, LEFT_MAJOR, y + np.uint32(i * LANES_Y), k)
        for n in range(4):
            for r in range(4):
                for j in range(TN):
                    acc[i + r, j] += a[n, r] * b[n, j]
