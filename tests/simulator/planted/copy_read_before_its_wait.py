"""A tile that is read before the copy to it was waited for.

`cp.async` runs while its thread continues. A barrier of the block does not wait for copies: each thread has to wait for
its own first.
"""

import numpy as np

from labkit import cuda, ptx

FINDING = "in-flight"
ARRAY = "tile"
WHO = ((0, 0), (0, 63))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(x, y):
    tile = cuda.shared.array(256, np.float32, alignment=16)
    t = cuda.threadIdx.x
    ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)  # <- and here
    ptx.cp_async_commit()
    cuda.syncthreads()
    a, b, c, d = ptx.load4(tile, 4 * (63 - t))  # <- here
    ptx.store4(y, 4 * t, a, b, c, d)


@cuda.jit
def right(x, y):
    tile = cuda.shared.array(256, np.float32, alignment=16)
    t = cuda.threadIdx.x
    ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    a, b, c, d = ptx.load4(tile, 4 * (63 - t))
    ptx.store4(y, 4 * t, a, b, c, d)


def arguments():
    return np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
