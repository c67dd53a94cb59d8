"""Each thread computes TM x TN outputs in registers: TM + TN shared loads for TM * TN multiply-adds.

For each k a thread copies TM values of A and TN values of B into registers, its fragments, and adds their outer product
to its sums. Loads grow with the sides of its tile, multiply-adds with the area. Its outputs are as many rows and
columns apart as the block has threads, so that neighbouring threads read neighbouring values of B and write
neighbouring values of C.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN)       global loads per output
    K * (1 / TM + 1 / TN)       shared loads per output
    (BM + BN) * BK * 4          bytes of shared memory per block
    2 * K / BK                  barriers per block

Limited by instructions that are not multiply-adds, such as 16 shared loads per 64 of them: 61% of those in the loop are
multiply-adds (sm_90). `s06_vectorised` loads four values with each load.
"""

import numpy as np

from labkit import cuda
from labkit.gemm.problem import check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 128, 8  # a block's part of C, and its steps along K
TM, TN = 8, 8  # outputs of a thread
COLUMNS, ROWS = BN // TN, BM // TM  # threads of a block along x and y
THREADS = COLUMNS * ROWS


@cuda.jit
def register_tile(A, B, C):
    A_tile = cuda.shared.array((BM, BK), np.float32)
    B_tile = cuda.shared.array((BK, BN), np.float32)
    sums = cuda.local.array((TM, TN), np.float32)
    a = cuda.local.array(TM, np.float32)
    b = cuda.local.array(TN, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    x, y = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * BM, np.uint32(cuda.blockIdx.x) * BN
    t = y * COLUMNS + x
    M, K = A.shape
    N = B.shape[1]

    zero = np.float32(0)
    for i in range(TM):
        for j in range(TN):
            sums[i, j] = zero
    for start in range(0, K, BK):
        for first in range(0, BM, THREADS // BK):
            row, k = first + t // BK, t % BK
            A_tile[row, k] = A[top + row, start + k] if top + row < M and start + k < K else zero
        for first in range(0, BK, THREADS // BN):
            k, col = first + t // BN, t % BN
            B_tile[k, col] = B[start + k, left + col] if start + k < K and left + col < N else zero
        cuda.syncthreads()
        for k in range(BK):
            for i in range(TM):
                a[i] = A_tile[y + i * ROWS, k]
            for j in range(TN):
                b[j] = B_tile[k, x + j * COLUMNS]
            for i in range(TM):
                for j in range(TN):
                    sums[i, j] += a[i] * b[j]
        cuda.syncthreads()

    for i in range(TM):
        for j in range(TN):
            row, col = top + y + i * ROWS, left + x + j * COLUMNS
            if row < M and col < N:
                C[row, col] = sums[i, j]


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BN), -(-M // BM)), (COLUMNS, ROWS)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    return [Launch(register_tile, *geometry(M, N), (A, B, C))]
