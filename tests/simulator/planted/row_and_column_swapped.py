"""Row and column change places between the guard and the access.

The guard holds for `[row, col]`, the access is `[col, row]`: on a square matrix it would be inside and merely wrong;
on this one it leaves the array.
"""

import numpy as np

from labkit import cuda

FINDING = "bounds"
ARRAY = "A"
WHO = ((0, (10, 0)),)
SANITIZER = "memcheck"
GRID, BLOCK = (2, 1), (16, 16)


@cuda.jit
def wrong(A, B):
    col, row = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        B[row, col] = A[col, row]  # <- here


@cuda.jit
def right(A, B):
    col, row = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        B[row, col] = A[row, col]


def arguments():
    return np.ones((10, 20), np.float32), np.zeros((10, 20), np.float32)
