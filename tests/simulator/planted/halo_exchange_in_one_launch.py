"""Two steps of a stencil in one launch.

`cuda.syncthreads()` between the steps waits for the threads of the block, not for neighbouring blocks. At the block's
edges the second step reads neighbours that may not have made their first. The right kernel makes one step per launch.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "race"
ARRAY = "b"
WHO = ((0, 63), (1, 0))
SANITIZER = None  # racecheck watches shared memory alone
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(a, b):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        b[i] = (a[i - 1] + a[i + 1]) * float32(0.5)  # <- and here
    cuda.syncthreads()
    if 0 < i < a.size - 1:
        a[i] = (b[i - 1] + b[i + 1]) * float32(0.5)  # <- here


@cuda.jit
def right(a, b):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        b[i] = (a[i - 1] + a[i + 1]) * float32(0.5)


def arguments():
    return np.arange(128, dtype=np.float32) ** 2, np.zeros(128, np.float32)
