"""In which order blocks take the tiles of C, so that those at work together share rows and columns in L2."""

from labkit import cuda

BAND = 16  # rows of tiles that are walked column by column


@cuda.jit(device=True)
def place(tile, rows, cols):
    """The row and column of a tile among `rows` x `cols`: band after band, each column by column."""
    band = tile // (BAND * cols)
    height = min(rows - band * BAND, BAND)
    within = tile - band * BAND * cols
    return band * BAND + within % height, within // height
