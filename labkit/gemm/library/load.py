"""How a stage of an operand comes to shared memory, and where an instruction finds it there.

An operand reaches the kernel as a tuple that has a tensor map, `map`. `load_left` and `load_right` may be replaced by
functions that bring other boxes to the same places, or the same number of bytes from somewhere else.
"""

from typing import NamedTuple

from labkit import cuda, ptx
from labkit.gemm.library.constants import BK, K_MAJOR, LEFT_MAJOR, MN_DEPTH, MN_ROWS, RIGHT_MAJOR


class Operand(NamedTuple):
    """A batch of matrices, for the copy engine."""

    map: ptx.TensorMap


@cuda.jit(device=True)
def load_left(tiles, stage, left, batch, first, step, full):
    """Begins to fetch a stage of the left operand: rows of a product from the first of the tile on, a step along k."""
    load(tiles, stage, left.map, LEFT_MAJOR, batch, first, step, full)


@cuda.jit(device=True)
def load_right(tiles, stage, right, batch, first, step, full):
    """As `load_left`, of the right operand."""
    load(tiles, stage, right.map, RIGHT_MAJOR, batch, first, step, full)


@cuda.jit(device=True)
def load(tiles, stage, tensor_map, major, batch, first, step, full):
    """A box of rows along k, or boxes of 64 rows that run along these."""
    if major == K_MAJOR:
        ptx.tma_load(tiles, (stage, 0, 0, 0), tensor_map, (batch, first, step * BK), full, stage)
    else:
        for box in range(tiles.shape[1]):
            begin = batch, step * MN_DEPTH, (first + box * MN_ROWS) // 2
            ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, begin, full, stage)


@cuda.jit(device=True)
def part_of(stage, major, row, word):
    """Where in shared memory the part of an operand begins that an instruction takes, from a row and a word on."""
    if major == K_MAJOR:
        return stage, 0, row, word
    return stage, row // MN_ROWS, 2 * word, 0
