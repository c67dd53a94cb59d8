"""Vector accesses of 64 and 128 bits, to global memory and to shared memory in several patterns.

A launch has a function that makes its arguments; `per_element` launches a thread per element of its number.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.bench.counters.kernels.launch import BLOCK_THREADS, Launch, normal, per_element, zeros

THREADS = BLOCK_THREADS
PAIRS, FOURS = 2 * THREADS, 4 * THREADS  # numbers of a block, two or four per thread
SMALL, LARGE = 1 << 18, 1 << 25  # elements; LARGE is more than an L2 holds


@cuda.jit
def copy2(x, out):
    i = 2 * cuda.grid(1)
    if i < out.size:
        a, b = ptx.load2(x, i)
        ptx.store2(out, i, a, b)


@cuda.jit
def copy4(x, out):
    i = 4 * cuda.grid(1)
    if i < out.size:
        a, b, c, d = ptx.load4(x, i)
        ptx.store4(out, i, a, b, c, d)


@cuda.jit
def exchange2(x, out, step):
    shared = cuda.shared.array(PAIRS, np.float32, alignment=16)
    t = cuda.threadIdx.x
    i = 2 * cuda.grid(1)
    a, b = ptx.load2(x, i)
    ptx.store2(shared, 2 * t, a, b)
    cuda.syncthreads()
    a, b = ptx.load2(shared, 2 * (step * t % THREADS))
    ptx.store2(out, i, a, b)


@cuda.jit
def exchange4(x, out, step):
    shared = cuda.shared.array(FOURS, np.float32, alignment=16)
    t = cuda.threadIdx.x
    i = 4 * cuda.grid(1)
    a, b, c, d = ptx.load4(x, i)
    ptx.store4(shared, 4 * t, a, b, c, d)
    cuda.syncthreads()
    a, b, c, d = ptx.load4(shared, 4 * (step * t % THREADS))
    ptx.store4(out, i, a, b, c, d)


def _exchange(kernel, elements, step):
    count, name = 128 * THREADS * elements, f"{kernel.__name__} with step {step}"  # `elements` per thread
    return Launch(kernel, 128, THREADS, lambda: (normal(count), zeros(count), step), problem=str(count), name=name)


LAUNCHES = (
    per_element(copy2, SMALL // 2, lambda: (normal(SMALL), zeros(SMALL)), problem=str(SMALL)),
    per_element(copy4, SMALL // 4, lambda: (normal(SMALL), zeros(SMALL)), problem=str(SMALL)),
    per_element(copy4, LARGE // 4, lambda: (normal(LARGE), zeros(LARGE)), problem=str(LARGE)),
    *(_exchange(kernel, n, step) for kernel, n in ((exchange2, 2), (exchange4, 4)) for step in (0, 1, 2, 8)),
)
