"""Grouped order of the output tiles: blocks that run together share rows and columns in L2."""

import numpy as np

from labkit import cuda

GROUP_ROWS = 16  # rows of tiles that are visited column by column


@cuda.jit(device=True)
def tile_coordinates(tile, rows, cols):
    """Return the row and column of a tile among `rows` x `cols` tiles: group after group, each column by column."""
    tile, rows, cols = np.uint32(tile), np.uint32(rows), np.uint32(cols)  # a division of 64 bits takes 100 cycles
    first_row = tile // np.uint32(GROUP_ROWS * cols) * np.uint32(GROUP_ROWS)
    group_rows = np.uint32(min(rows - first_row, GROUP_ROWS))
    index_in_group = np.uint32(tile - first_row * cols)
    return first_row + index_in_group % group_rows, index_in_group // group_rows
