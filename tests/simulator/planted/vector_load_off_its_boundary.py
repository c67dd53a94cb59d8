"""A load of 16 bytes that begins in the middle of 16.

Four floats can be read at once where their address is a multiple of 16 bytes. Shifted by one element it is not, and
the GPU stops the launch.
"""

import numpy as np

from labkit import cuda, ptx

FINDING = "misaligned"
ARRAY = "x"
WHO = ((0, 0),)
SANITIZER = "memcheck"
GRID, BLOCK = 1, 32


@cuda.jit
def wrong(x, y):
    i = 4 * cuda.grid(1)
    a, b, c, d = ptx.load4(x, i + 1)  # <- here
    ptx.store4(y, i, a, b, c, d)


@cuda.jit
def right(x, y):
    i = 4 * cuda.grid(1)
    a, b, c, d = ptx.load4(x, i)
    ptx.store4(y, i, a, b, c, d)


def arguments():
    return np.arange(132, dtype=np.float32), np.zeros(128, np.float32)
