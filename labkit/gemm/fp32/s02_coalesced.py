"""One thread per output, and neighbouring threads side by side in a row.

Only the order of the threads changes: `x` counts columns, as in every later step. A warp is two rows of 16 outputs: its
loads of B are contiguous, and all threads of a row load the same element of A.

Costs, for a K that fills whole sectors:

    2 * K       global loads per output
    4           sectors per warp and k: 2 of A, 2 of B
    0           bytes of shared memory per block

Limited by the loads: two per multiply-add. Every element of A is loaded N times, every element of B M times;
`s03_tiled` lets the threads of a block share their loads.
"""

import numpy as np

from labkit import cuda
from labkit.gemm.problem import check_operands
from labkit.ladder import Launch

BLOCK = 16


@cuda.jit
def coalesced(A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        K = np.int32(A.shape[1])  # 32 bits, like a C++ int: the compiler unrolls such a loop further
        total = np.float32(0)
        for k in range(K):
            total += A[row, k] * B[k, col]
        C[row, col] = total


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BLOCK), -(-M // BLOCK)), (BLOCK, BLOCK)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    return [Launch(coalesced, *geometry(M, N), (A, B, C))]
