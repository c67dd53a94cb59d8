"""The pitch of the tile is one bank longer than its rows: columns are free of bank conflicts.

Element (row, col) is in bank (row * PITCH + col) * B / 4 % 32, with B bytes per element. With one spare word of 4 bytes
a row is an odd number of banks long, and 32 rows begin in 32 banks. (Ruetsch and Micikevicius, Optimizing Matrix
Transpose in CUDA, 2009.)

Costs for elements of B bytes, and whole tiles:

    B / 32                      sectors read per element
    B / 32                      sectors written per element
    TILE * (TILE * B + 4)       bytes of shared memory per block
    1                           barriers per block
    0                           bank conflicts per block

Limited by bytes in flight: a thread issues loads of four elements, and a warp loads 32 * B bytes per instruction.
`s04_vectorised` loads 16 bytes per thread and instruction.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import specialise_itemsize

TILE = 32  # elements along each side
ROWS = 8  # that a block moves at a time
ELEMENT = np.uint32  # an element's bits; `specialise_itemsize` replaces it for elements of 2 bytes
PITCH = TILE + 4 // np.dtype(ELEMENT).itemsize  # elements from a row of the tile to the next


@cuda.jit
def padded(x, y):
    tile = cuda.shared.array((TILE, PITCH), ELEMENT)
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
    return [Launch(specialise_itemsize(padded, x.dtype.itemsize), *geometry(x), (x, y))]
