"""Loads of 16-bit rows to swizzled tiles in shared memory, two elements per word.

16-byte vector p of row r is stored at vector p ^ (r % 8). So `ldmatrix` has no bank conflict: eight neighbouring rows
have a vector in different banks.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.formats import Format

PANEL = 32  # words of a row that eight threads load at a time


@cuda.jit(device=True)
def load_tile(tile, X, row, stride, position, length, thread, threads):
    """Load a tile by the block: rows of a head from a position on, and zeros past its length.

    The head starts at a row of X; `stride` is the number of rows from one position to the next.
    """
    y, vec = np.uint32(thread // 8), np.uint32(thread % 8)
    swizzled = np.uint32((vec ^ y % 8) * 4)  # also for rows that are a multiple of 8 on
    for i in range(tile.shape[0] * 8 // threads):
        pos = np.uint32(position + y + i * (threads // 8))
        for panel in range(0, tile.shape[1], PANEL):
            word = np.uint32(panel + vec * 4)
            w0 = w1 = w2 = w3 = np.uint32(0)
            if pos < length and word < X.shape[1]:
                w0, w1, w2, w3 = ptx.load4(X, (np.uint32(row + pos * stride), word))
            ptx.store4(tile, (np.uint32(y + i * (threads // 8)), np.uint32(panel + swizzled)), w0, w1, w2, w3)


@cuda.jit(device=True)
def copy_tile_async(tiles, stage, X, row, stride, position, length, thread, threads):
    """Issue `cp.async` copies of a tile: rows of a head from a position on, and zeros past its length."""
    y, vec = np.uint32(thread // 8), np.uint32(thread % 8)
    swizzled = np.uint32((vec ^ y % 8) * 4)
    for i in range(tiles.shape[1] * 8 // threads):
        pos = np.uint32(position + y + i * (threads // 8))
        for panel in range(0, tiles.shape[2], PANEL):
            word = np.uint32(panel + vec * 4)
            index = stage, np.uint32(y + i * (threads // 8)), np.uint32(panel + swizzled)
            valid_bytes = 16 if pos < length and word < X.shape[1] else 0
            ptx.cp_async(tiles, index, X, (np.uint32(row + pos * stride), word), 16, valid_bytes)


@cache
def specialise_format(kernel, format: Format, **constants):
    """The kernel for a format, with these constants."""
    return specialise(kernel, FORMAT=format.number, **constants)
