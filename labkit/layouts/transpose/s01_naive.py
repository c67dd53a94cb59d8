"""One thread per element: it reads the element from the source and writes it to the target.

Neighbouring threads of a warp read neighbours in a row of the source: contiguous memory. In the target their elements
are a whole row apart, and each of the 32 takes a sector of its own.

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
    """Return grid and block: x of the grid counts columns of the source, y its rows, z matrices."""
    batch, rows, cols = x.shape
    return (-(-cols // BLOCK[0]), -(-rows // BLOCK[1]), batch), BLOCK


def launches(x, y, problem):
    """y = x in another layout."""
    x, y = problem.as_matrices(x, y)  # batches of matrices of bits; those of y are transposes
    return [Launch(naive, *geometry(x), (x, y))]
