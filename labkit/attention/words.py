"""Tiles of 16-bit elements in shared memory, two in a word, and their way to and from rows in global memory.

A piece of 16 bytes of row r lies where piece p ^ (r % 8) would be, so that `ldmatrix` meets no bank twice: eight
neighbouring rows have a piece in different banks.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.formats import Format


@cuda.jit(device=True)
def load_tile(tile, X, row, apart, position, length, thread, threads):
    """The block loads positions of a head, from one on, and zeros behind its length.

    The head begins at a row of X, and its positions are `apart` rows from one another.
    """
    pieces = tile.shape[1] // 4
    for n in range(thread, tile.shape[0] * pieces, threads):
        y, piece = np.uint32(n // pieces), np.uint32(n % pieces)
        w0 = w1 = w2 = w3 = np.uint32(0)
        if position + y < length and piece * 4 < X.shape[1]:
            w0, w1, w2, w3 = ptx.load4(X, (np.uint32(row + (position + y) * apart), np.uint32(piece * 4)))
        ptx.store4(tile, (y, np.uint32((piece ^ y % 8) * 4)), w0, w1, w2, w3)


@cuda.jit(device=True)
def copy_tile(tiles, stage, X, row, apart, position, length, thread, threads):
    """As `load_tile`, by copies that run beside the threads."""
    pieces = tiles.shape[2] // 4
    for n in range(thread, tiles.shape[1] * pieces, threads):
        y, piece = np.uint32(n // pieces), np.uint32(n % pieces)
        at = stage, y, np.uint32((piece ^ y % 8) * 4)
        if position + y < length and piece * 4 < X.shape[1]:
            ptx.cp_async(tiles, at, X, (np.uint32(row + (position + y) * apart), np.uint32(piece * 4)), 16, 16)
        else:
            ptx.cp_async(tiles, at, X, (np.uint32(0), np.uint32(0)), 16, 0)


@cache
def in_format(kernel, format: Format, **constants):
    """The kernel's copy for a format that has these constants."""
    return specialise(kernel, FORMAT=format.number, **constants)
