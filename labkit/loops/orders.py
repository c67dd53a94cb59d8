"""The three loops in all six orders, which give the same sums by other access patterns.

The name of an order lists its loops from the outermost to the innermost. C must be zero before.
"""

from labkit.simulator.seam import njit


@njit(cache=True)
def ijk(A, B, C):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@njit(cache=True)
def jik(A, B, C):
    for j in range(B.shape[1]):
        for i in range(A.shape[0]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@njit(cache=True)
def ikj(A, B, C):
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@njit(cache=True)
def kij(A, B, C):
    for k in range(A.shape[1]):
        for i in range(A.shape[0]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@njit(cache=True)
def jki(A, B, C):
    for j in range(B.shape[1]):
        for k in range(A.shape[1]):
            for i in range(A.shape[0]):
                C[i, j] += A[i, k] * B[k, j]


@njit(cache=True)
def kji(A, B, C):
    for k in range(A.shape[1]):
        for j in range(B.shape[1]):
            for i in range(A.shape[0]):
                C[i, j] += A[i, k] * B[k, j]


ORDERS = {function.__name__: function for function in (ijk, jik, ikj, kij, jki, kji)}
