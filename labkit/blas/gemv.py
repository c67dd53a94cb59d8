"""gemv: y = alpha * A @ x + beta * y for a row-major A, one row a block.

The threads of a block walk along its row, VECTORS loads of 16 bytes each at a time, and x is read through L1 and L2,
where it stays. Short rows get blocks of fewer warps.

Costs, for an M x N matrix:

    M * N * 4               bytes of A
    2 * M * N               FLOPs: half of one a byte

Limited by DRAM bandwidth.
"""

import numpy as np

from labkit import cuda
from labkit.blas.access import suited
from labkit.blas.problem import check_gemv
from labkit.blas.sums import WARP, block_sum
from labkit.ptx import load4

VECTORS = 4
MOST_WARPS = 8


@cuda.jit
def gemv(alpha, A, x, beta, y):
    own = cuda.local.array((VECTORS, 4), np.float32)
    of_warps = cuda.shared.array(MOST_WARPS, np.float32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    row = cuda.blockIdx.x
    A_row = A[row]
    chunk = 4 * VECTORS * threads
    whole = x.size // chunk * chunk
    total = np.float32(0)
    for start in range(0, whole, chunk):
        for vector in range(VECTORS):
            col = start + 4 * (vector * threads + t)
            own[vector, 0], own[vector, 1], own[vector, 2], own[vector, 3] = load4(A_row, col)
        for vector in range(VECTORS):
            a, b, c, d = load4(x, start + 4 * (vector * threads + t))
            total += own[vector, 0] * a + own[vector, 1] * b + own[vector, 2] * c + own[vector, 3] * d
    for col in range(whole + t, x.size, threads):
        total += A_row[col] * x[col]

    total = block_sum(total, of_warps)
    if t == 0:
        y[row] = alpha * total + (beta * y[row] if beta != 0 else np.float32(0))


def geometry(M: int, N: int):
    """Grid and block: a row a block, of as many warps as find work in it."""
    warps = min(MOST_WARPS, max(1, N // (4 * VECTORS * WARP)))
    return M, warps * WARP


def launch(alpha, A, x, beta, y, stream=0):
    """y = alpha * A @ x + beta * y; where beta is 0, what y held does not matter."""
    M, N = check_gemv(A, x, y)
    grid, block = geometry(M, N)
    suited(gemv, A, x)[grid, block, stream](np.float32(alpha), A, x, np.float32(beta), y)
