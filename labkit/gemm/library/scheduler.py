"""Which work a block does: items are numbered, and block b of n takes items b, b + n, b + 2 n, ..."""

from typing import NamedTuple

import numpy as np

from labkit import cuda
from labkit.gemm.library.constants import SPLITS
from labkit.parts.tile_order import tile_coordinates


class Tiles(NamedTuple):
    """The tiles of a product: how many one below the other and side by side, their steps along k, and items of work."""

    rows: int
    cols: int
    steps: int
    items: int


@cuda.jit(device=True)
def work(item, tiles):
    """Of an item of work: its part of k, its product of the batch, and the row and column of its tile."""
    part, item = np.uint32(item) % np.uint32(SPLITS), np.uint32(item) // np.uint32(SPLITS)
    of_product = np.uint32(tiles.rows * tiles.cols)
    batch = np.uint32(item) // of_product
    row, col = tile_coordinates(item - batch * of_product, tiles.rows, tiles.cols)
    return part, batch, row, col


@cuda.jit(device=True)
def steps_of(part, tiles):
    """The first step along k of a part, and the first one behind it."""
    return tiles.steps * part // SPLITS, tiles.steps * (part + 1) // SPLITS
