"""gemv with the matrix transposed: y = alpha * A.T @ x + beta * y for a row-major A.

Neighbours of a row belong to different outputs now, so a lane keeps four columns to itself and walks down the rows,
and a warp still reads neighbours. A block has a strip of 128 columns and a part of the rows, which its warps take in
turn; they add up in shared memory. Of the blocks of a strip, the one that is last adds the parts.

Costs, for an M x N matrix:

    M * N * 4               bytes of A
    2 * M * N               FLOPs: half of one a byte

Limited by DRAM bandwidth.

Parts: `load_four` of `labkit.parts.fours`; `is_last_block` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.blas.problem import GemvTransposed, check_factor, check_gemv
from labkit.ladder import Launch
from labkit.parts.fours import load_four
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment
from labkit.ptx import store4

PROBLEM = GemvTransposed
WARPS = 8
VECTORS = 4  # rows that a lane has under way at a time
STRIP = 4 * 32  # columns of a block
CHUNK = WARPS * VECTORS  # rows that a block takes at a time
BLOCKS = 512


@cuda.jit(device=True)
def sum_of_warps(total, of_warps):
    """For thread t below STRIP, the sum of column t of the strip over all warps, of which each lane holds four."""
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    store4(of_warps[warp], 4 * lane, total[0], total[1], total[2], total[3])
    cuda.syncthreads()
    t = warp * 32 + lane
    of_block = np.float32(0)
    if t < STRIP:
        for other in range(WARPS):
            of_block += of_warps[other, t]
    return of_block


@cuda.jit
def gemv_t(alpha, A, x, beta, y, partials, arrived):
    own = cuda.local.array((VECTORS, 4), np.float32)
    total = cuda.local.array(4, np.float32)
    of_warps = cuda.shared.array((WARPS, STRIP), np.float32, alignment=16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    M, N = A.shape
    first_col = cuda.blockIdx.x * STRIP
    share = -(-M // cuda.gridDim.y)
    first = min(cuda.blockIdx.y * share, M)
    last = min(first + share, M)
    whole = first + (last - first) // CHUNK * CHUNK
    for e in range(4):
        total[e] = np.float32(0)
    if first_col + 4 * lane < N:
        for start in range(first, whole, CHUNK):
            for vector in range(VECTORS):
                A_row = A[start + vector * WARPS + warp]
                own[vector, 0], own[vector, 1], own[vector, 2], own[vector, 3] = load_four(A_row, first_col + 4 * lane)
            for vector in range(VECTORS):
                factor = x[start + vector * WARPS + warp]
                for e in range(4):
                    total[e] += factor * own[vector, e]
        for row in range(whole + warp, last, WARPS):
            a, b, c, d = load_four(A[row], first_col + 4 * lane)
            total[0] += x[row] * a
            total[1] += x[row] * b
            total[2] += x[row] * c
            total[3] += x[row] * d

    t = warp * 32 + lane
    of_part = sum_of_warps(total, of_warps)
    if t < STRIP:
        partials[cuda.blockIdx.y, first_col + t] = of_part
    if is_last_block(arrived, cuda.blockIdx.x, cuda.gridDim.y):
        for e in range(4):
            total[e] = np.float32(0)
        for part in range(warp, cuda.gridDim.y, WARPS):
            a, b, c, d = load_four(partials[part], first_col + 4 * lane)
            total[0] += a
            total[1] += b
            total[2] += c
            total[3] += d
        of_column = sum_of_warps(total, of_warps)
        col = first_col + t
        if t < STRIP and col < N:
            y[col] = alpha * of_column + (beta * y[col] if beta != 0 else np.float32(0))


def geometry(M: int, N: int):
    """Grid and block: a strip of columns along x, a part of the rows along y, about BLOCKS blocks in all.

    No part is so small that a warp of its block has nothing to do.
    """
    strips = -(-N // STRIP)
    parts = max(1, min(BLOCKS // strips, M // CHUNK))
    return (strips, parts), (32, WARPS)


def launches(alpha, A, x, beta, y, workspace):
    """y = alpha * A.T @ x + beta * y; where beta is 0, what y held does not matter."""
    M, N = check_gemv(A, x, y, transposed=True)
    grid, block = geometry(M, N)
    strips, parts = grid
    kernel = specialise_alignment(gemv_t, N % 4 == 0 and can_load_vectors(A))
    factors = check_factor("alpha", alpha), check_factor("beta", beta)
    beside = workspace.array("partials", (parts, strips * STRIP), np.float32), workspace.counters(strips)
    return [Launch(kernel, grid, block, (factors[0], A, x, factors[1], y, *beside))]
