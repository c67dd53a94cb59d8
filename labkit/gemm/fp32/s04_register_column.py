"""Each thread computes a column of TM outputs in registers, and uses each value of B that it loads TM times.

A block's part of C has BM rows and BN columns, and advances by BK along K. A thread keeps TM sums, one below the other.
For each k it loads one value of B from shared memory into a register and multiplies it by TM values of A: TM + 1 shared
loads for TM multiply-adds, where `tiled` takes two for each.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN)       global loads per output
    K * (1 + 1 / TM)            shared loads per output
    (BM + BN) * BK * 4          bytes of shared memory per block
    2 * K / BK                  barriers per block

Limited by shared memory: each multiply-add loads a value of A from it. `s05_register_tile` keeps those in registers.
"""

import numpy as np

from labkit import cuda
from labkit.gemm.problem import check_operands
from labkit.ladder import Launch

BM, BN, BK = 64, 64, 8  # a block's part of C, and its steps along K
TM = 8  # outputs of a thread


@cuda.jit
def register_column(A, B, C):
    A_tile = cuda.shared.array((BM, BK), np.float32)
    B_tile = cuda.shared.array((BK, BN), np.float32)
    sums = cuda.local.array(TM, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    x, y = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * BM, np.uint32(cuda.blockIdx.x) * BN
    A_row, A_k = (y * BN + x) // BK, (y * BN + x) % BK  # of A's tile, that this thread loads
    M, K = A.shape
    N = B.shape[1]

    zero = np.float32(0)
    for i in range(TM):
        sums[i] = zero
    for start in range(0, K, BK):
        inside = top + A_row < M and start + A_k < K
        A_tile[A_row, A_k] = A[top + A_row, start + A_k] if inside else zero
        B_tile[y, x] = B[start + y, left + x] if start + y < K and left + x < N else zero
        cuda.syncthreads()
        for k in range(BK):
            b = B_tile[k, x]
            for i in range(TM):
                sums[i] += A_tile[y * TM + i, k] * b
        cuda.syncthreads()

    for i in range(TM):
        row = top + y * TM + i
        if row < M and left + x < N:
            C[row, left + x] = sums[i]


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns, y columns of TM outputs."""
    return (-(-N // BN), -(-M // BM)), (BN, BM // TM)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    return [Launch(register_column, *geometry(M, N), (A, B, C))]
