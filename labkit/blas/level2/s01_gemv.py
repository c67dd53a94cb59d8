"""gemv: y = alpha * A @ x + beta * y for a row-major A.

The threads of a row walk along it, with VECTORS loads of 16 bytes each in flight; x stays in L1 and L2. A block always
has 128 threads: all of them for one long row, or one warp for each of four short rows. A row gets more warps only where
each still has MIN_ITERATIONS iterations, so that the loop takes most of the time and not the final sum.

Costs, for an M x N matrix:

    M * N * 4               bytes of A
    2 * M * N               FLOPs: 1/2 FLOP/byte

Limited by DRAM bandwidth.

Parts: `load_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`; `block_sum` of
`labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.blas.problem import Gemv, as_float32_factor, check_gemv
from labkit.ladder import Launch
from labkit.parts.fours import load_four
from labkit.parts.sums import WARP, block_sum
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment

PROBLEM = Gemv
VECTORS = 2  # loads of 16 bytes in flight per thread
WARPS = 4  # of a block
MIN_ITERATIONS = 4  # of a warp that shares a row with others


@cuda.jit
def gemv(alpha, A, x, beta, y):
    values = cuda.local.array((VECTORS, 4), np.float32)
    warp_sums = cuda.shared.array((WARPS, WARPS), np.float32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    chunk = 4 * VECTORS * threads
    whole = x.size // chunk * chunk
    total = np.float32(0)
    if row < y.size:
        A_row = A[row]
        for start in range(0, whole, chunk):
            for vector in range(VECTORS):
                col = start + 4 * (vector * threads + t)
                values[vector, 0], values[vector, 1], values[vector, 2], values[vector, 3] = load_four(A_row, col)
            for vector in range(VECTORS):
                a, b, c, d = load_four(x, start + 4 * (vector * threads + t))
                total += values[vector, 0] * a + values[vector, 1] * b + values[vector, 2] * c + values[vector, 3] * d
        for col in range(whole + t, x.size, threads):
            total += A_row[col] * x[col]

    total = block_sum(total, warp_sums[cuda.threadIdx.y])
    if t == 0 and row < y.size:
        y[row] = alpha * total + (beta * y[row] if beta != 0 else np.float32(0))


def geometry(M: int, N: int):
    """Grid and block: 1, 2 or 4 warps per row, 4, 2 or 1 rows per block."""
    max_warps = N // (MIN_ITERATIONS * 4 * VECTORS * WARP)
    warps = next(warps for warps in (WARPS, WARPS // 2, 1) if warps <= max(1, max_warps))
    rows = WARPS // warps
    return -(-M // rows), (warps * WARP, rows)


def launches(alpha, A, x, beta, y):
    """y = alpha * A @ x + beta * y; where beta is 0, the old y is ignored, even NaN."""
    M, N = check_gemv(A, x, y)
    kernel = specialise_alignment(gemv, aligned=can_load_vectors(A, x))
    arguments = as_float32_factor("alpha", alpha), A, x, as_float32_factor("beta", beta), y
    return [Launch(kernel, *geometry(M, N), arguments)]
