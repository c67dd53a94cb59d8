"""The loops over j and k change places, so that the innermost one walks along rows.

A row of C grows by a multiple of a row of B at a time: both are read in the order in which they lie in
memory, every byte of a line is used, and the compiler can take eight or sixteen elements at once.

Costs, for each multiply-add:

    2 loads and 1 store     of B and C, along rows (and, at source level, 1 of A)
    2                       floating-point operations

Limited by the caches again once B is larger than they are: all of B passes by for every row of C;
`s04_blocked` uses a part of B again while it is near.
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
