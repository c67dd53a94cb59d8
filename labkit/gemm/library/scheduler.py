"""Scheduler of persistent blocks: work items are numbered, and block b of n takes items b, b + n, b + 2 n, ..."""

from typing import NamedTuple

import numpy as np

from labkit import cuda
from labkit.gemm.library.constants import SPLITS
from labkit.parts.tile_order import tile_coordinates


class Tiles(NamedTuple):
    """Tiles of a product: numbers of rows and columns of tiles, steps along k, and items of work."""

    rows: int
    cols: int
    steps: int
    items: int


@cuda.jit(device=True)
def decode_item(item, tiles):
    """Return an item's part of k, product of the batch, and row and column of its tile."""
    part, item = np.uint32(item) % np.uint32(SPLITS), np.uint32(item) // np.uint32(SPLITS)
    num_tiles = np.uint32(tiles.rows * tiles.cols)
    batch = np.uint32(item) // num_tiles
    row, col = tile_coordinates(item - batch * num_tiles, tiles.rows, tiles.cols)
    return part, batch, row, col


@cuda.jit(device=True)
def k_range(part, tiles):
    """Return the first step along k of a part, and the end."""
    return tiles.steps * part // SPLITS, tiles.steps * (part + 1) // SPLITS
