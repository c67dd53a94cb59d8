"""Neighbouring threads read elements that lie a row apart.

With `row` along x each lane of a warp needs a sector of its own, and of its 32 bytes it uses four.
"""

import numpy as np

from labkit import cuda

FINDING = "uncoalesced"
ARRAY = "A"
WHO = ()
SANITIZER = None  # slow, but right
GRID, BLOCK = (2, 2), (32, 8)


@cuda.jit
def wrong(A, B):
    row, col = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        B[row, col] = A[row, col]  # <- here


@cuda.jit
def right(A, B):
    col, row = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        B[row, col] = A[row, col]


def arguments():
    return np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
