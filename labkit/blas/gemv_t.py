"""gemv with the matrix transposed: y = alpha * A.T @ x + beta * y for a row-major A, in two passes.

Neighbours of a row belong to different outputs now, so a lane keeps four columns to itself and walks down the rows,
and a warp still reads neighbours. A block has a strip of 128 columns and a part of the rows, which its warps take in
turn; they add up in shared memory. The second pass adds the parts.

Costs, for an M x N matrix:

    M * N * 4               bytes of A
    2 * M * N               FLOPs: half of one a byte

Limited by DRAM bandwidth.
"""

import numpy as np

from labkit import cuda
from labkit.blas.access import suited
from labkit.blas.problem import check_gemv
from labkit.ptx import load4, store4

WARPS = 8
VECTORS = 4  # rows that a lane has under way at a time
STRIP = 4 * 32  # columns of a block
CHUNK = WARPS * VECTORS  # rows that a block takes at a time
BLOCKS = 1024
THREADS = 256  # of the second pass


@cuda.jit
def gemv_t(A, x, partials):
    own = cuda.local.array((VECTORS, 4), np.float32)
    total = cuda.local.array(4, np.float32)
    of_warps = cuda.shared.array((WARPS, STRIP), np.float32, alignment=16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    M, N = A.shape
    col = cuda.blockIdx.x * STRIP + 4 * lane
    share = -(-M // cuda.gridDim.y)
    first = cuda.blockIdx.y * share
    last = min(first + share, M)
    whole = first + (last - first) // CHUNK * CHUNK
    for e in range(4):
        total[e] = np.float32(0)
    if col < N:
        for start in range(first, whole, CHUNK):
            for vector in range(VECTORS):
                A_row = A[start + vector * WARPS + warp]
                own[vector, 0], own[vector, 1], own[vector, 2], own[vector, 3] = load4(A_row, col)
            for vector in range(VECTORS):
                factor = x[start + vector * WARPS + warp]
                for e in range(4):
                    total[e] += factor * own[vector, e]
        for row in range(whole + warp, last, WARPS):
            a, b, c, d = load4(A[row], col)
            total[0] += x[row] * a
            total[1] += x[row] * b
            total[2] += x[row] * c
            total[3] += x[row] * d

    store4(of_warps[warp], 4 * lane, total[0], total[1], total[2], total[3])
    cuda.syncthreads()
    col = cuda.blockIdx.x * STRIP + warp * 32 + lane
    if warp < STRIP // 32 and col < N:
        of_block = np.float32(0)
        for other in range(WARPS):
            of_block += of_warps[other, warp * 32 + lane]
        partials[cuda.blockIdx.y, col] = of_block


@cuda.jit
def add_parts(alpha, partials, beta, y):
    col = cuda.grid(1)
    if col < y.size:
        total = np.float32(0)
        for part in range(partials.shape[0]):
            total += partials[part, col]
        y[col] = alpha * total + (beta * y[col] if beta != 0 else np.float32(0))


def parts(M: int, N: int) -> int:
    """Into how many parts the rows are cut, so that there are about BLOCKS blocks with work for all their warps."""
    strips = -(-N // STRIP)
    return max(1, min(BLOCKS // strips, -(-M // CHUNK)))


def launch(alpha, A, x, beta, y, partials=None, stream=0):
    """y = alpha * A.T @ x + beta * y; where beta is 0, what y held does not matter.

    `partials` is room for parts(M, N) x N sums on the device; give it to have none made for each call.
    """
    M, N = check_gemv(A, y, x)
    if partials is None:
        partials = cuda.device_array((parts(M, N), N), np.float32)
    grid = -(-N // STRIP), parts(M, N)
    suited(gemv_t, A)[grid, (32, WARPS), stream](A, x, partials)
    add_parts[-(-N // THREADS), THREADS, stream](np.float32(alpha), partials, np.float32(beta), y)
