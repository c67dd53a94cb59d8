"""Tiles in shared memory: copies of a stage, and a thread's products of two tiles.

A tile is stored as its operand: rows that run along k (K-major), or rows of one k each (MN-major). Lanes load what four
rows have at four k, from either kind. In a K-major tile groups of four k are swizzled by the
row, so that lanes on neighbouring groups of rows read different banks.
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.simt.constants import INDEX, K_MAJOR, LANES_X, LANES_Y, LEFT_MAJOR, RIGHT_MAJOR, THREADS, TM, TN


class Operand(NamedTuple):
    """A batch of matrices as one vector: their distance, that of lines, and that of a line's elements.

    Lines are rows that run along k if it is K-major, and else those of one k each. `rows`: of a K-major matrix.
    """

    array: object
    first: np.int64
    batch: np.int64
    line: np.uint32
    step: np.uint32
    rows: np.uint32


@cuda.jit(device=True)
def swizzle(row, k, lanes):
    """Return the column of a K-major tile at which k is stored; `lanes` load it from neighbouring groups of rows."""
    return k ^ row // 4 % min(lanes, 8) * 4


@cuda.jit(device=True)
def copy_tile(tile, stage, major, width, lanes, X, matrix, first, start, end, t):
    """Begin this thread's copies of a tile: rows of a matrix of X from `first` on, k from `start` to `end`.

    Zeros are written for elements outside.
    """
    lines, length = np.uint32(tile.shape[1]), np.uint32(tile.shape[2])
    if major == K_MAJOR:
        top, left, bottom, right = first, start, X.rows, end
    else:
        top, left, bottom, right = start, first, end, X.rows
    begin = matrix + np.uint64(top) * np.uint64(X.line) + np.uint64(left) * np.uint64(X.step)
    vectors = length // width  # of a line
    for n in range(0, lines * vectors, THREADS):
        i = np.uint32(t + n)
        if lines * vectors % THREADS == 0 or i < lines * vectors:
            line, place = np.uint32(i // vectors), np.uint32(i % vectors * width)
            row, col = np.uint32(top + line), np.uint32(left + place)
            column = swizzle(line, place, lanes) if major == K_MAJOR else place
            inside = min(np.uint32(right - col), width) if row < bottom and col < right else np.uint32(0)
            source = begin + np.uint64(INDEX(INDEX(line) * INDEX(X.line)) + INDEX(INDEX(place) * INDEX(X.step)))
            if width == 4:
                ptx.cp_async(tile, (stage, line, column), X.array, source, 16, inside * np.uint32(4))
            else:
                ptx.cp_async(tile, (stage, line, column), X.array, source, 4, inside * np.uint32(4))


@cuda.jit(device=True)
def load_right(b, tile, stage, x, k):
    """Load this thread's columns of the right operand at four k."""
    for j in range(0, TN, 4):
        col = x + np.uint32(j * LANES_X)
        if RIGHT_MAJOR == K_MAJOR:
            place = swizzle(col, k, LANES_X)
            for n in range(j, j + 4):
                b[0, n], b[1, n], b[2, n], b[3, n] = ptx.load4(tile, (stage, col + np.uint32(n - j), place))
        else:
            for n in range(4):
                b[n, j], b[n, j + 1], b[n, j + 2], b[n, j + 3] = ptx.load4(tile, (stage, k + np.uint32(n), col))


@cuda.jit(device=True)
def multiply(acc, tile, stage, y, k, b):
    """Add the products of this thread's rows of the left operand and its columns `b` of the right one at four k."""
    a = cuda.local.array(4, np.float32)
    for i in range(0, TM, 4):
        row = y + np.uint32(i * LANES_Y)
        for m in range(4):
            if LEFT_MAJOR == K_MAJOR:  # four k of row m
                a[0], a[1], a[2], a[3] = ptx.load4(tile, (stage, row + np.uint32(m), swizzle(row, k, LANES_Y)))
                for n in range(4):
                    for j in range(TN):
                        acc[i + m, j] += a[n] * b[n, j]
            else:  # four rows at k + m
                a[0], a[1], a[2], a[3] = ptx.load4(tile, (stage, k + np.uint32(m), row))
                for r in range(4):
                    for j in range(TN):
                        acc[i + r, j] += a[r] * b[m, j]


@cuda.jit(device=True)
def multiply_eight(acc, left_tile, right_tile, stage, y, x, k, following, b, b_next):
    """Add the products at eight k, whose first four columns `b` are loaded; load those of k `following`."""
    load_right(b_next, right_tile, stage, x, k + np.uint32(4))
    multiply(acc, left_tile, stage, y, k, b)
    load_right(b, right_tile, stage, x, following)
    multiply(acc, left_tile, stage, y, k + np.uint32(4), b_next)
