"""All blocks count into one element with `+=`.

`+=` reads, adds and writes. Between the read and the write another thread does the same, and its count is lost.
"""

import numpy as np

from labkit import cuda

FINDING = "race"
ARRAY = "count"
WHO = ((0, 0), (1, 0))
SANITIZER = None  # racecheck watches shared memory alone
GRID, BLOCK = 2, 64


@cuda.jit
def wrong(x, count):
    i = cuda.grid(1)
    if x[i] > 0:
        count[0] += 1  # <- here # <- and here


@cuda.jit
def right(x, count):
    i = cuda.grid(1)
    if x[i] > 0:
        cuda.atomic.add(count, 0, 1)


def arguments():
    return np.ones(128, np.float32), np.zeros(1, np.int64)
