"""The loops over j and k are swapped, so that the innermost one walks along rows.

Each pass adds a multiple of a row of B to a row of C: both are contiguous, every byte of a line is used, and the
compiler can vectorise over eight or sixteen elements.

Costs, for each multiply-add:

    2 loads and 1 store     of B and C, along rows (and, at source level, 1 of A)
    2                       floating-point operations

Limited by the caches once B is larger than they are: all of B is read for every row of C; `s04_blocked` reuses a part
of B while it is cached.
"""

import numpy as np
from numba import njit

from labkit.ladder import Launch
from labkit.loops.operands import check_operands


@njit(cache=True)
def rows(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    for i in range(M):
        for j in range(N):
            C[i, j] = np.float32(0)
        for k in range(K):
            for j in range(N):
                C[i, j] += A[i, k] * B[k, j]


def launches(A, B, C):
    """C = A @ B."""
    check_operands(A, B, C)
    return [Launch(rows, (), (), (A, B, C))]
