"""A transpose whose columns lie in one bank.

Rows of 32 floats put a whole column into the same bank of shared memory, and 32 lanes alternate. One unused element
a row spreads them.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "bank-conflict"
ARRAY = "tile"
WHO = ()
SANITIZER = None  # slow, but right
GRID, BLOCK = 1, (32, 32)
PADDED = 33


@cuda.jit
def wrong(A, B):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = A[y, x]
    cuda.syncthreads()
    B[y, x] = tile[x, y]  # <- here


@cuda.jit
def right(A, B):
    tile = cuda.shared.array((32, PADDED), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = A[y, x]
    cuda.syncthreads()
    B[y, x] = tile[x, y]


def arguments():
    return np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
