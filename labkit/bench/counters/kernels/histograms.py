"""Histograms of bytes: with atomics on global memory, and on a copy in each block's shared memory."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import BLOCK_THREADS, L2_PAIRS, Launch, integers, per_element, zeros

BINS = 256
ELEMENTS = 1 << 18


@cuda.jit
def histogram_global(x, counts):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def histogram_shared(x, counts):
    block_counts = cuda.shared.array(BINS, np.int32)
    t = cuda.threadIdx.x
    block_counts[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(block_counts, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, block_counts[t])


def _arguments():
    return integers(ELEMENTS, BINS, np.uint8), zeros(BINS, dtype=np.int32)


REPEATED = {"global_atomic_sectors": "NVIDIA does not publish how L2 splits a warp's atomics on repeated elements"}
LAUNCHES = (
    per_element(histogram_global, ELEMENTS, _arguments, left_open=L2_PAIRS | REPEATED),
    Launch(histogram_shared, 256, BLOCK_THREADS, _arguments, problem=str(ELEMENTS), left_open=L2_PAIRS),
)
