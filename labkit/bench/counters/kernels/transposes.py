"""Transposes of a square matrix: through global memory alone, and through tiles with and without bank conflicts."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import Launch, normal, zeros

TILE = 32
ROWS = 8  # rows of a tile that a block handles at a time
PADDED = TILE + 1  # words of a row of the tile, so that its columns meet all banks


@cuda.jit
def transpose_naive(x, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        out[col, row] = x[row, col]


@cuda.jit
def transpose_tiled(x, out):
    tile = cuda.shared.array((TILE, TILE), np.float32)
    column, line = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for row in range(line, TILE, ROWS):
        tile[row, column] = x[top + row, left + column]
    cuda.syncthreads()
    for row in range(line, TILE, ROWS):
        out[left + row, top + column] = tile[column, row]


@cuda.jit
def transpose_padded(x, out):
    tile = cuda.shared.array((TILE, PADDED), np.float32)
    column, line = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for row in range(line, TILE, ROWS):
        tile[row, column] = x[top + row, left + column]
    cuda.syncthreads()
    for row in range(line, TILE, ROWS):
        out[left + row, top + column] = tile[column, row]


def _square(kernel, side, rows):
    """Return a launch with a block of TILE x ROWS threads per TILE columns and `rows` rows."""
    grid, block = (side // TILE, side // rows), (TILE, ROWS)
    return Launch(kernel, grid, block, lambda: (normal(side, side), zeros(side, side)), problem=f"{side}x{side}")


LAUNCHES = tuple(
    _square(kernel, side, rows)
    for kernel, rows in ((transpose_naive, ROWS), (transpose_tiled, TILE), (transpose_padded, TILE))
    for side in (512, 4096)
)
