"""Block 0 adds up what the other blocks are still computing.

Blocks run in any order, so the partial sums of the others may be there or not. The right kernel adds each block's
sum by an atomic, which needs no order.
"""

import numpy as np

from labkit import cuda

FINDING = "race"
ARRAY = "partial"
WHO = ((0, 0), (1, 0))
SANITIZER = None  # racecheck watches shared memory alone
GRID, BLOCK = 4, 32


@cuda.jit
def wrong(x, partial, total):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        partial[b] = x[b]  # <- and here
        if b == 0:
            for k in range(cuda.gridDim.x):
                total[0] += partial[k]  # <- here


@cuda.jit
def right(x, partial, total):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        partial[b] = x[b]
        cuda.atomic.add(total, 0, x[b])


def arguments():
    return np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(1, np.float32)
