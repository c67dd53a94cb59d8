"""Four values per 128-bit load and store: a quarter of the instructions that are not multiply-adds.

The values of a fragment must be contiguous, in groups of four. In B's tile they are, if a thread's columns are four
neighbours and four more half a tile on. In A's tile they are one below the other: so A is transposed on its way into
shared memory. A 128-bit access needs 16-byte alignment: tiles inside of matrices with rows of a multiple of 4 elements.
Other tiles are loaded value by value.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 4       global loads per output
    K * (1 / TM + 1 / TN) / 4       shared loads per output
    (BM + BN) * BK * 4              bytes of shared memory per block
    2 * K / BK                      barriers per block
    (BM * BK / 32) * K / BK         bank conflicts per block

Of the instructions in the loop 81% are multiply-adds (sm_90). Two lanes that share a row of A write to the same bank,
four rows apart: `s07_swizzle` moves them, which gains 0.1% at 4096 (H100).
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.fp32.edges import load_four
from labkit.gemm.problem import check_c_order, check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 128, 8  # a block's part of C, and its steps along K
TM, TN = 8, 8  # outputs of a thread, in groups of 4 x 4
COLUMNS, ROWS = BN // TN, BM // TM  # threads of a block along x and y
THREADS = COLUMNS * ROWS


@cuda.jit
def vectorised(A, B, C):
    A_tile = cuda.shared.array((BK, BM), np.float32, alignment=16)
    B_tile = cuda.shared.array((BK, BN), np.float32, alignment=16)
    sums = cuda.local.array((TM, TN), np.float32)
    a = cuda.local.array(TM, np.float32)
    b = cuda.local.array(TN, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    x, y = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * BM, np.uint32(cuda.blockIdx.x) * BN
    t = y * COLUMNS + x
    M, K = A.shape
    N = B.shape[1]
    aligned = K % 4 == 0 and N % 4 == 0 and top + BM <= M and left + BN <= N

    for i in range(TM):
        for j in range(TN):
            sums[i, j] = 0
    for start in range(0, K, BK):
        whole = aligned and start + BK <= K
        for first in range(0, BM, THREADS // (BK // 4)):
            row, k = first + t // (BK // 4), t % (BK // 4) * 4
            A_tile[k, row], A_tile[k + 1, row], A_tile[k + 2, row], A_tile[k + 3, row] = load_four(
                A, top + row, start + k, whole
            )
        for first in range(0, BK, THREADS // (BN // 4)):
            k, col = first + t // (BN // 4), t % (BN // 4) * 4
            v0, v1, v2, v3 = load_four(B, start + k, left + col, whole)
            ptx.store4(B_tile, (k, col), v0, v1, v2, v3)
        cuda.syncthreads()
        for first in range(0, BK, 4):  # eight k unrolled into one would take too many registers for two blocks on an SM
            for k in range(first, first + 4):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(A_tile, (k, 4 * y + i * ROWS))
                for j in range(0, TN, 4):
                    b[j], b[j + 1], b[j + 2], b[j + 3] = ptx.load4(B_tile, (k, 4 * x + j * COLUMNS))
                for i in range(TM):
                    for j in range(TN):
                        sums[i, j] += a[i] * b[j]
        cuda.syncthreads()

    for i in range(TM):
        row = top + 4 * y + i // 4 * 4 * ROWS + i % 4
        for j in range(0, TN, 4):
            col = left + 4 * x + j * COLUMNS
            if aligned:
                ptx.store4(C, (row, col), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
            else:
                for n in range(4):
                    if row < M and col + n < N:
                        C[row, col + n] = sums[i, j + n]


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BN), -(-M // BM)), (COLUMNS, ROWS)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    check_c_order(A, B, C)
    return [Launch(vectorised, *geometry(M, N), (A, B, C))]
