"""A shift that writes into the array it reads.

Thread i takes the element of its right neighbour, which takes the next one. Which value it gets depends on which thread
was first, in the same block and in the next.
"""

import numpy as np

from labkit import cuda

FINDING = "race"
ARRAY = "x"
WHO = ((1, 0), (0, 63))
SANITIZER = None  # racecheck watches shared memory alone
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    if i < x.size - 1:
        x[i] = x[i + 1]  # <- here # <- and here


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    if i < x.size - 1:
        y[i] = x[i + 1]


def arguments():
    return np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
