"""The definition: a row of A times a column of B for each element of C.

Costs, for each element of C:

    2 * K       loads, K of them down a column of B
    2 * K       floating-point operations

Limited by the interpreter, which takes about a hundred machine instructions per multiply-add; `s02_compiled` avoids it.
"""

import numpy as np

from labkit.ladder import Launch
from labkit.loops.operands import check_operands


def python(A, B, C):
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
    return [Launch(python, (), (), (A, B, C))]
