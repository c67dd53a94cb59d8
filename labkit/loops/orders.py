"""The three loops in all six orders: the same sums, other walks through memory.

The name of an order lists its loops from the outermost in. C must hold zeros before.
"""

from numba import njit


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
