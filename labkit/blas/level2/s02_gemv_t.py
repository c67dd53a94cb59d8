"""gemv with the matrix transposed: y = alpha * A.T @ x + beta * y for a row-major A.

Neighbours of a row belong to different outputs, so each lane takes four columns and walks down the rows; a warp still
reads neighbours. A block has a strip of 128 columns and a part of the rows, divided among its warps, whose sums are
added in shared memory. The last block of a strip adds the parts.

Costs, for an M x N matrix:

    M * N * 4               bytes of A
    2 * M * N               FLOPs: 1/2 FLOP/byte

Limited by DRAM bandwidth.

Parts: `load_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`; `is_last_block` of
`labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.blas.problem import GemvTransposed, as_float32_factor, check_gemv
from labkit.ladder import Launch
from labkit.parts.fours import load_four
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment
from labkit.ptx import store4

PROBLEM = GemvTransposed
WARPS = 8
VECTORS = 4  # rows that a lane has in flight
STRIP = 4 * 32  # columns per block
CHUNK = WARPS * VECTORS  # rows per block and iteration
BLOCKS = 512  # target: about four per SM of an H100


@cuda.jit(device=True)
def sum_over_warps(total, warp_sums):
    """Return, in thread t < STRIP, column t summed over all warps; `total` has the four columns of each lane."""
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    store4(warp_sums[warp], 4 * lane, total[0], total[1], total[2], total[3])
    cuda.syncthreads()
    t = warp * 32 + lane
    block_total = np.float32(0)
    if t < STRIP:
        for other in range(WARPS):
            block_total += warp_sums[other, t]
    return block_total


@cuda.jit
def gemv_t(alpha, A, x, beta, y, partials, arrived):
    values = cuda.local.array((VECTORS, 4), np.float32)
    total = cuda.local.array(4, np.float32)
    warp_sums = cuda.shared.array((WARPS, STRIP), np.float32, alignment=16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    M, N = A.shape
    col0 = cuda.blockIdx.x * STRIP
    share = -(-M // cuda.gridDim.y)
    begin = min(cuda.blockIdx.y * share, M)
    end = min(begin + share, M)
    whole = begin + (end - begin) // CHUNK * CHUNK
    for e in range(4):
        total[e] = np.float32(0)
    if col0 + 4 * lane < N:
        for start in range(begin, whole, CHUNK):
            for vector in range(VECTORS):
                A_row = A[start + vector * WARPS + warp]
                values[vector, 0], values[vector, 1], values[vector, 2], values[vector, 3] = load_four(
                    A_row, col0 + 4 * lane
                )
            for vector in range(VECTORS):
                factor = x[start + vector * WARPS + warp]
                for e in range(4):
                    total[e] += factor * values[vector, e]
        for row in range(whole + warp, end, WARPS):
            a, b, c, d = load_four(A[row], col0 + 4 * lane)
            total[0] += x[row] * a
            total[1] += x[row] * b
            total[2] += x[row] * c
            total[3] += x[row] * d

    t = warp * 32 + lane
    part_total = sum_over_warps(total, warp_sums)
    if t < STRIP:
        partials[cuda.blockIdx.y, col0 + t] = part_total
    if is_last_block(arrived, cuda.blockIdx.x, cuda.gridDim.y):  # `arrived`: 0 before and after each launch
        for e in range(4):
            total[e] = np.float32(0)
        for part in range(warp, cuda.gridDim.y, WARPS):
            a, b, c, d = load_four(partials[part], col0 + 4 * lane)
            total[0] += a
            total[1] += b
            total[2] += c
            total[3] += d
        column_total = sum_over_warps(total, warp_sums)
        col = col0 + t
        if t < STRIP and col < N:
            y[col] = alpha * column_total + (beta * y[col] if beta != 0 else np.float32(0))


def geometry(M: int, N: int):
    """Grid and block: strips of columns along x, parts of the rows along y, about BLOCKS blocks; each warp has work."""
    strips = -(-N // STRIP)
    parts = max(1, min(BLOCKS // strips, M // CHUNK))
    return (strips, parts), (32, WARPS)


def launches(alpha, A, x, beta, y, workspace):
    """y = alpha * A.T @ x + beta * y; where beta is 0, the old y is ignored, even NaN."""
    M, N = check_gemv(A, x, y, transposed=True)
    grid, block = geometry(M, N)
    strips, parts = grid
    kernel = specialise_alignment(gemv_t, aligned=N % 4 == 0 and can_load_vectors(A))
    partials, arrived = workspace.array("partials", (parts, strips * STRIP), np.float32), workspace.counters(strips)
    arguments = as_float32_factor("alpha", alpha), A, x, as_float32_factor("beta", beta), y, partials, arrived
    return [Launch(kernel, grid, block, arguments)]
