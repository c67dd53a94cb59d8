"""One block more than the GPU holds at a time.

An H100 runs 264 blocks of 1024 threads at once, two on each of its 132 multiprocessors. The 265th runs alone: for
as long as a whole wave takes, 131 multiprocessors have nothing to do. A grid of 264 blocks whose threads each take
an element in every stride shares the work out.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "tail"
ARRAY = None
WHO = ()
SANITIZER = None  # slow, but right
GRID, BLOCK = 265, 1024
RIGHT_GRID, RIGHT_BLOCK = 264, 1024


@cuda.jit  # <- here
def wrong(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * float32(2)


@cuda.jit
def right(x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = x[i] * float32(2)


def arguments():
    return np.ones(265 * 1024, np.float32), np.zeros(265 * 1024, np.float32)
