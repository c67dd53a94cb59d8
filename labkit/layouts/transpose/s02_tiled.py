"""A block transposes a tile in shared memory: it reads rows and writes rows.

A block loads 32 x 32 elements of the source row by row, waits at a barrier, and writes the 32 x 32 elements of the
target row by row. Only the tile is read along its columns, and shared memory has no sectors. A thread moves four
elements.

Costs for elements of B bytes, and whole tiles:

    B / 32                      sectors read per element
    B / 32                      sectors written per element
    TILE**2 * B                 bytes of shared memory per block
    1                           barriers per block
    TILE * (TILE * B / 4 - 1)   bank conflicts per block: a column's 32 elements share B / 4 of 1, or of 2 banks

Limited by those conflicts; `s03_padded` removes them.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import specialise_itemsize

TILE = 32  # elements along each side
ROWS = 8  # that a block moves at a time
ELEMENT = np.uint32  # an element's bits; `specialise_itemsize` replaces it for elements of 2 bytes


@cuda.jit
def tiled(x, y):
    tile = cuda.shared.array((TILE, TILE), ELEMENT)
    n, lane, line = np.uint32(cuda.blockIdx.z), np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    left, top = np.uint32(cuda.blockIdx.x * TILE), np.uint32(cuda.blockIdx.y * TILE)
    rows, cols = np.uint32(x.shape[1]), np.uint32(x.shape[2])
    for i in range(0, TILE, ROWS):
        row, col = top + i + line, left + lane
        if row < rows and col < cols:
            tile[i + line, lane] = x[n, row, col]
    cuda.syncthreads()
    for i in range(0, TILE, ROWS):
        row, col = left + i + line, top + lane
        if row < cols and col < rows:
            y[n, row, col] = tile[lane, i + line]


def geometry(x):
    """Return grid and block: x of the grid counts tiles along a row of the source, y along a column, z matrices."""
    batch, rows, cols = x.shape
    return (-(-cols // TILE), -(-rows // TILE), batch), (TILE, ROWS)


def launches(x, y, problem):
    """y = x in another layout."""
    x, y = problem.as_matrices(x, y)  # batches of matrices of bits; those of y are transposes
    return [Launch(specialise_itemsize(tiled, x.dtype.itemsize), *geometry(x), (x, y))]
