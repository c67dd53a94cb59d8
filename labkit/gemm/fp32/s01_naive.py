"""One thread per output: each walks a row of A and a column of B.

The grid replaces the two outer loops of the triple loop. `x` counts rows here: neighbouring threads of a warp read A
a whole row apart, and each of them loads a sector of its own.

Costs, for a K that fills whole sectors:

    2 * K       global loads per output
    17          sectors per warp and k: 16 of A, 1 of B
    0           bytes of shared memory per block

Limited by look-ups in L1: 17 cache lines per warp and k, one per cycle; `s02_coalesced` lets `x` count columns.
"""

import numpy as np

from labkit import cuda
from labkit.gemm.problem import check_operands
from labkit.ladder import Launch

BLOCK = 16


@cuda.jit
def naive(A, B, C):
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        K = np.int32(A.shape[1])  # 32 bits, like a C++ int: the compiler unrolls such a loop further
        total = np.float32(0)
        for k in range(K):
            total += A[row, k] * B[k, col]
        C[row, col] = total


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts rows."""
    return (-(-M // BLOCK), -(-N // BLOCK)), (BLOCK, BLOCK)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    return [Launch(naive, *geometry(M, N), (A, B, C))]
