"""One thread an element: it is read where the source has it and written where the target wants it.

Neighbouring threads of a warp are neighbours of a row of the source, so that a warp reads one run of memory. In the
target their elements lie a whole row apart, and each of the 32 pulls in a sector of its own.

Costs for elements of B bytes, and rows of whole blocks on both sides:

    B / 32      sectors read per element
    1           sectors written per element
    0           bytes of shared memory per block

Limited by the sectors that are written for a few bytes each; `s02_tiled` writes rows.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch

BLOCK = 32, 8


@cuda.jit
def naive(x, y):
    n = np.uint32(cuda.blockIdx.z)
    col = np.uint32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    row = np.uint32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    if row < np.uint32(x.shape[1]) and col < np.uint32(x.shape[2]):
        y[n, col, row] = x[n, row, col]


def geometry(x):
    """Grid and block: along x of the grid columns of the source, along y its rows, along z matrices."""
    batch, rows, cols = x.shape
    return (-(-cols // BLOCK[0]), -(-rows // BLOCK[1]), batch), BLOCK


def launches(x, y, problem):
    """y = x in another layout."""
    x, y = problem.as_matrices(x, y)
    return [Launch(naive, *geometry(x), (x, y))]
