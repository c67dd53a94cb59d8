"""In which order blocks take the tiles of C, so that those at work together share rows and columns in L2."""

import numpy as np

from labkit import cuda

BAND = 16  # rows of tiles that are walked column by column


@cuda.jit(device=True)
def place(tile, rows, cols):
    """The row and column of a tile among `rows` x `cols`: band after band, each column by column."""
    tile, rows, cols = np.uint32(tile), np.uint32(rows), np.uint32(cols)  # a division of 64 bits takes 100 cycles
    first = tile // np.uint32(BAND * cols) * np.uint32(BAND)
    height = np.uint32(min(rows - first, BAND))
    within = np.uint32(tile - first * cols)
    return first + within % height, within // height
