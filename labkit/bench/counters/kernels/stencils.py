"""Stencils in one and two dimensions, reading neighbours from global memory, or from a tile with its rim."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import BLOCK_THREADS, L2_PAIRS, Launch, normal, per_element, zeros

QUARTER = np.float32(0.25)
THREADS = BLOCK_THREADS
WITH_RIM = THREADS + 2
TILE = 16
TILE_WITH_RIM = TILE + 2
ELEMENTS = 1 << 18
SIDE = 512


@cuda.jit
def stencil_1d(x, out):
    i = cuda.grid(1) + 1
    if i < x.size - 1:
        out[i] = QUARTER * x[i - 1] + x[i] + QUARTER * x[i + 1]


@cuda.jit
def stencil_1d_shared(x, out):
    row = cuda.shared.array(WITH_RIM, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1) + 1
    if i < x.size - 1:
        row[t + 1] = x[i]
        if t == 0:
            row[0] = x[i - 1]
        if t == THREADS - 1 or i == x.size - 2:
            row[t + 2] = x[i + 1]
    cuda.syncthreads()
    if i < x.size - 1:
        out[i] = QUARTER * row[t] + row[t + 1] + QUARTER * row[t + 2]


@cuda.jit
def stencil_2d(x, out):
    left, above = cuda.grid(2)
    col, row = left + 1, above + 1
    if row < x.shape[0] - 1 and col < x.shape[1] - 1:
        around = x[row - 1, col] + x[row + 1, col] + x[row, col - 1] + x[row, col + 1]
        out[row, col] = QUARTER * around - x[row, col]


@cuda.jit
def stencil_2d_shared(x, out):
    tile = cuda.shared.array((TILE_WITH_RIM, TILE_WITH_RIM), np.float32)
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    t = cuda.threadIdx.y * TILE + cuda.threadIdx.x
    for index in range(t, TILE_WITH_RIM * TILE_WITH_RIM, TILE * TILE):
        row, col = index // TILE_WITH_RIM, index % TILE_WITH_RIM
        tile[row, col] = x[top + row, left + col]
    cuda.syncthreads()
    col, row = cuda.threadIdx.x + 1, cuda.threadIdx.y + 1
    around = tile[row - 1, col] + tile[row + 1, col] + tile[row, col - 1] + tile[row, col + 1]
    out[top + row, left + col] = QUARTER * around - tile[row, col]


def _plane(kernel, side):
    """Return a launch over the inner side x side elements of a plane, in tiles."""
    grid, sides = (side // TILE, side // TILE), (side + 2, side + 2)
    return Launch(kernel, grid, (TILE, TILE), lambda: (normal(*sides), zeros(*sides)), problem=f"{side}x{side}")


LAUNCHES = (
    per_element(stencil_1d, ELEMENTS, lambda: (normal(ELEMENTS), zeros(ELEMENTS)), left_open=L2_PAIRS),
    per_element(stencil_1d_shared, ELEMENTS, lambda: (normal(ELEMENTS), zeros(ELEMENTS))),
    _plane(stencil_2d, SIDE),
    _plane(stencil_2d_shared, SIDE),
)
