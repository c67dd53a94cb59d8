"""Histograms of bytes: with atomics on global memory, and on a copy in each block's shared memory."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import FIRST_WARP, WARP_BLOCK, Launch, along, empty, whole

BINS = 256
ELEMENTS = 1 << 18


@cuda.jit
def histogram_global(x, counts):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def histogram_shared(x, counts):
    mine = cuda.shared.array(BINS, np.int32)
    t = cuda.threadIdx.x
    mine[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, mine[t])


def _arguments():
    return whole(ELEMENTS, BINS, np.uint8), empty(BINS, dtype=np.int32)


REPEATED = {"global_atomic_sectors": "how L2 takes a warp's atomics apart that repeat an element is not published"}
LAUNCHES = (
    along(histogram_global, ELEMENTS, _arguments, left_open=FIRST_WARP | REPEATED),
    Launch(histogram_shared, 256, WARP_BLOCK, _arguments, str(ELEMENTS), left_open=FIRST_WARP),
)
