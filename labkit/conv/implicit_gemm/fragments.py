"""Register product of a warp: fragments from shared memory, a thread's TM x TN outputs in float32.

A's tiles hold its rows, BK values each, swizzled; B's tiles hold rows of B. A thread has every LANES_Y-th row of its
warp's tile, and groups of four columns, LANES_X groups apart. `specialise` of a step's WM sets it here too.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.implicit_gemm.tilings import WN

WM = 64  # rows of a warp
LANES_Y, LANES_X = 4, 8  # lanes of a warp
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread


@cuda.jit(device=True)
def swizzle(row, k):
    """Return the column of value k in a row of A's tile: four neighbouring rows have it in different banks."""
    return k ^ row % 4 * 4


@cuda.jit(device=True)
def load_rows(b, B_tile, buffer, k, x):
    """Load this thread's part of four rows of B."""
    for n in range(4):
        for j in range(0, TN, 4):
            b[n, j], b[n, j + 1], b[n, j + 2], b[n, j + 3] = ptx.load4(B_tile, (buffer, k + n, x + j * LANES_X))


@cuda.jit(device=True)
def multiply(acc, A_tile, buffer, k, y, b):
    """Add the products of A's columns from k to k + 3 and the four rows of B in `b`."""
    a = cuda.local.array(4, np.float32)
    for i in range(TM):
        row = y + i * LANES_Y
        a[0], a[1], a[2], a[3] = ptx.load4(A_tile, (buffer, row, swizzle(row, k)))
        for n in range(4):
            for j in range(TN):
                acc[i, j] += a[n] * b[n, j]
