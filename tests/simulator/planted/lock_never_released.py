"""A lock that its first owner keeps.

One warp after the other takes the lock to add to the total. The first forgets to give it back, and the second waits
for ever.
"""

import numpy as np

from labkit import cuda

FINDING = "deadlock"
ARRAY = None
WHO = ((0, 32),)
SANITIZER = None  # it never comes to an end that could be checked
HANGS = True
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(lock, total):
    if cuda.threadIdx.x % 32 == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:  # <- here
            pass
        total[0] += 1
        cuda.threadfence()


@cuda.jit
def right(lock, total):
    if cuda.threadIdx.x % 32 == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def arguments():
    return np.zeros(1, np.int32), np.zeros(1, np.int64)
