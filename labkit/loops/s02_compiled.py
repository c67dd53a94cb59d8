"""The same three loops as machine code: numba compiles the function at its first call.

The accesses and their order are unchanged, so the speed of memory is what remains.

Costs, for each element of C:

    2 * K       loads, K of them down a column of B
    2 * K       floating-point operations

Limited by the walk down the columns of B: each step loads another cache line and uses 4 of its 64 bytes; `s03_rows`
changes the order of the loops.
"""

import numpy as np
from numba import njit

from labkit.ladder import Launch
from labkit.loops.operands import check_operands


@njit(cache=True)
def compiled(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    for i in range(M):
        for j in range(N):
            total = np.float32(0)
            for k in range(K):
                total += A[i, k] * B[k, j]
            C[i, j] = total


def launches(A, B, C):
    """C = A @ B."""
    check_operands(A, B, C)
    return [Launch(compiled, (), (), (A, B, C))]
