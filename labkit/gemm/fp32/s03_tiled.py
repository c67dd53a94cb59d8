"""A block loads a tile of A and a tile of B into shared memory, and each thread uses TILE values of both.

The block walks along K in steps of TILE. In each step every thread loads one element of each tile and waits until the
tiles are complete. It multiplies its row of one by its column of the other, and waits again before the tiles are
overwritten. Parts of tiles outside of A or B are zeros.

Costs, for sides that are multiples of TILE:

    2 * K / TILE            global loads per output: each value is used TILE times
    8 / TILE                sectors per warp and k
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * K / TILE            barriers per block

Limited by shared memory: every multiply-add takes two loads from it. Later steps keep more of the work in registers.
"""

import numpy as np

from labkit import cuda
from labkit.gemm.problem import check_operands
from labkit.ladder import Launch

TILE = 16


@cuda.jit
def tiled(A, B, C):
    A_tile = cuda.shared.array((TILE, TILE), np.float32)
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    M, K = A.shape
    N = B.shape[1]

    zero = np.float32(0)  # a plain 0, an int64, would make the sum float64
    total = zero
    for start in range(0, K, TILE):
        A_tile[y, x] = A[row, start + x] if row < M and start + x < K else zero
        B_tile[y, x] = B[start + y, col] if start + y < K and col < N else zero
        cuda.syncthreads()
        for k in range(TILE):
            total += A_tile[y, k] * B_tile[k, x]
        cuda.syncthreads()

    if row < M and col < N:
        C[row, col] = total


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // TILE), -(-M // TILE)), (TILE, TILE)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    return [Launch(tiled, *geometry(M, N), (A, B, C))]
