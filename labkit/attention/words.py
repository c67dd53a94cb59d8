"""Tiles of 16-bit elements in shared memory, two in a word, and their way to and from rows in global memory.

A piece of 16 bytes of row r lies where piece p ^ (r % 8) would be, so that `ldmatrix` meets no bank twice: eight
neighbouring rows have a piece in different banks.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.formats import Format

PANEL = 32  # words of a row that eight threads take at once


@cuda.jit(device=True)
def load_tile(tile, X, row, stride, position, length, thread, threads):
    """The block loads positions of a head, from one on, and zeros behind its length.

    The head begins at a row of X, and its positions are `apart` rows from one another.
    """
    y, piece = np.uint32(thread // 8), np.uint32(thread % 8)
    swizzled = np.uint32((piece ^ y % 8) * 4)  # also for rows that are a multiple of 8 on
    for i in range(tile.shape[0] * 8 // threads):
        pos = np.uint32(position + y + i * (threads // 8))
        for panel in range(0, tile.shape[1], PANEL):
            word = np.uint32(panel + piece * 4)
            w0 = w1 = w2 = w3 = np.uint32(0)
            if pos < length and word < X.shape[1]:
                w0, w1, w2, w3 = ptx.load4(X, (np.uint32(row + pos * stride), word))
            ptx.store4(tile, (np.uint32(y + i * (threads // 8)), np.uint32(panel + swizzled)), w0, w1, w2, w3)


@cuda.jit(device=True)
def copy_tile_async(tiles, stage, X, row, stride, position, length, thread, threads):
    """As `load_tile`, by copies that run beside the threads."""
    y, piece = np.uint32(thread // 8), np.uint32(thread % 8)
    swizzled = np.uint32((piece ^ y % 8) * 4)
    for i in range(tiles.shape[1] * 8 // threads):
        pos = np.uint32(position + y + i * (threads // 8))
        for panel in range(0, tiles.shape[2], PANEL):
            word = np.uint32(panel + piece * 4)
            index = stage, np.uint32(y + i * (threads // 8)), np.uint32(panel + swizzled)
            valid_bytes = 16 if pos < length and word < X.shape[1] else 0
            ptx.cp_async(tiles, index, X, (np.uint32(row + pos * stride), word), 16, valid_bytes)


@cache
def specialise_format(kernel, format: Format, **constants):
    """The kernel's copy for a format that has these constants."""
    return specialise(kernel, FORMAT=format.number, **constants)
