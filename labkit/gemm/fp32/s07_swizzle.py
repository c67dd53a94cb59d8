"""A's tile is stored with its columns swizzled in its lower half, so that no two lanes write to one bank.

A lane writes four values of a row of A to four rows of the transposed tile. Its neighbour writes the next four values
of that row, four rows below, whose columns are in the same banks. So in the lower four rows column m is stored at
m ^ 16, sixteen banks away. Unlike padding this swizzle costs no memory, and it keeps each vector of four together.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 4       global loads per output
    K * (1 / TM + 1 / TN) / 4       shared loads per output
    (BM + BN) * BK * 4              bytes of shared memory per block
    2 * K / BK                      barriers per block
    0                               bank conflicts per block

Of the instructions in the loop 81% are multiply-adds (sm_90). Between two barriers a block loads, waits, and only then
computes. `s08_double_buffering` overlaps the two, which gains 2.5% at 4096 (H100).
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.fp32.edges import load_four
from labkit.gemm.problem import check_c_order, check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 128, 8  # a block's part of C, and its steps along K
SWIZZLE = 128 // BK  # banks between the groups of four rows of A's tile
TM, TN = 8, 8  # outputs of a thread, in groups of 4 x 4
COLUMNS, ROWS = BN // TN, BM // TM  # threads of a block along x and y
THREADS = COLUMNS * ROWS


@cuda.jit
def swizzle(A, B, C):
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
            column = row ^ k // 4 * SWIZZLE
            A_tile[k, column], A_tile[k + 1, column], A_tile[k + 2, column], A_tile[k + 3, column] = load_four(
                A, top + row, start + k, whole
            )
        for first in range(0, BK, THREADS // (BN // 4)):
            k, col = first + t // (BN // 4), t % (BN // 4) * 4
            v0, v1, v2, v3 = load_four(B, start + k, left + col, whole)
            ptx.store4(B_tile, (k, col), v0, v1, v2, v3)
        cuda.syncthreads()
        for first in range(0, BK, 4):
            column = 4 * y ^ first // 4 * SWIZZLE
            for k in range(first, first + 4):
                for i in range(0, TM, 4):
                    a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(A_tile, (k, column + i * ROWS))
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
    return [Launch(swizzle, *geometry(M, N), (A, B, C))]
