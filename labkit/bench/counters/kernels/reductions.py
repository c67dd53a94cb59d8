"""Sums: a tree in shared memory with interleaved and with neighbouring threads, with an atomic, over a stride."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import BLOCK_THREADS, Launch, normal, per_element, zeros

THREADS = BLOCK_THREADS
ELEMENTS = 1 << 18


@cuda.jit
def sum_interleaved(x, out):
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        first = 2 * step * t
        if first < THREADS:
            partial[first] += partial[first + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@cuda.jit
def sum_sequential(x, out):
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@cuda.jit
def sum_atomic(x, out):
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def sum_strided(x, out):
    total = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    out[cuda.grid(1)] = total


LAUNCHES = (
    per_element(sum_interleaved, ELEMENTS, lambda: (normal(ELEMENTS), zeros(ELEMENTS // THREADS))),
    per_element(sum_sequential, ELEMENTS, lambda: (normal(ELEMENTS), zeros(ELEMENTS // THREADS))),
    per_element(sum_atomic, ELEMENTS, lambda: (normal(ELEMENTS), zeros(1))),
    Launch(sum_strided, 128, THREADS, lambda: (normal(ELEMENTS), zeros(128 * THREADS)), problem=str(ELEMENTS)),
)
