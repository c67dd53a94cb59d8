"""Copies of one stage of an operand to shared memory, and its layout there.

An operand is a tuple with a tensor map, `map`. `load_left` and `load_right` may be replaced by functions that copy
other boxes to the same places, or the same number of bytes from elsewhere.
"""

from typing import NamedTuple

from labkit import cuda, ptx
from labkit.gemm.library.constants import BK, K_MAJOR, LEFT_MAJOR, MN_DEPTH, MN_ROWS, RIGHT_MAJOR


class Operand(NamedTuple):
    """A batch of matrices, read by TMA."""

    map: ptx.TensorMap


@cuda.jit(device=True)
def load_left(tiles, stage, left, batch, first_row, k_step, full):
    """Begin the copy of a stage of the left operand: the tile's rows from the first on, at one step along k."""
    load(tiles, stage, left.map, LEFT_MAJOR, batch, first_row, k_step, full)


@cuda.jit(device=True)
def load_right(tiles, stage, right, batch, first_row, k_step, full):
    """Begin the copy of a stage of the right operand; see `load_left`."""
    load(tiles, stage, right.map, RIGHT_MAJOR, batch, first_row, k_step, full)


@cuda.jit(device=True)
def load(tiles, stage, tensor_map, major, batch, first_row, k_step, full):
    """Begin the copy of one K-major box (contiguous along k), or of MN-major boxes (along the rows) of 64 rows each."""
    if major == K_MAJOR:
        ptx.tma_load(tiles, (stage, 0, 0, 0), tensor_map, (batch, first_row, k_step * BK), full, stage)
    else:
        for box in range(tiles.shape[1]):
            begin = batch, k_step * MN_DEPTH, (first_row + box * MN_ROWS) // 2
            ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, begin, full, stage)


@cuda.jit(device=True)
def operand_index(stage, major, row, word):
    """Return the index in shared memory of an instruction's operand that begins at a row and a word of k."""
    if major == K_MAJOR:
        return stage, 0, row, word
    return stage, row // MN_ROWS, 2 * word, 0
