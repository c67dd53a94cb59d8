"""A module constant that is changed between two launches.

numba compiles the value into the kernel at the first launch. The second one still scales by 2, and nothing says so.
"""

import numpy as np
from numba import float32

from labkit import cuda

FINDING = "changed-global"
ARRAY = None
WHO = ()
SANITIZER = None  # the kernel does what it was compiled to do
GRID, BLOCK = 1, 64
SCALE = float32(2)


def between_launches():
    global SCALE
    SCALE = float32(3)


@cuda.jit  # <- here
def wrong(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * SCALE


@cuda.jit
def right(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * y[i]


def arguments():
    return np.ones(64, np.float32), np.full(64, 2, np.float32)
