"""The consumer waits for a flag, and the producer waits for the consumer.

Warp 1 spins until the flag is up. Warp 0 raises it only behind a barrier, which warp 1 would have to reach first.
"""

import numpy as np

from labkit import cuda

FINDING = "deadlock"
ARRAY = None
WHO = ((0, 32), (0, 0))
SANITIZER = None  # it never comes to an end that could be checked
HANGS = True
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(flag, y):
    t = cuda.threadIdx.x
    if t == 32:
        while cuda.atomic.add(flag, 0, 0) == 0:  # <- here
            pass
    cuda.syncthreads()  # <- and here
    if t == 0:
        cuda.atomic.exch(flag, 0, 1)
    y[t] = t


@cuda.jit
def right(flag, y):
    t = cuda.threadIdx.x
    if t == 0:
        cuda.atomic.exch(flag, 0, 1)
    if t == 32:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    cuda.syncthreads()
    y[t] = t


def arguments():
    return np.zeros(1, np.int32), np.zeros(64, np.float32)
