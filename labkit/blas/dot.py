"""dot: the sum of x[i] * y[i], in two passes.

In the first, each block walks over both vectors in chunks, every BLOCKS-th one its own, and each thread has
2 * VECTORS loads of 16 bytes under way at a time. It leaves one sum a block; the second pass adds these. The order of
the additions depends on nothing but the length, so that the same vectors give the same bits on every GPU and in every
run, which atomic additions would not.

Costs, for n elements:

    2 * n * 4               bytes read
    2 * n                   FLOPs: a quarter of one a byte

Limited by DRAM bandwidth.
"""

import numpy as np

from labkit import cuda
from labkit.blas.access import suited
from labkit.blas.problem import check_vectors
from labkit.blas.sums import block_sum
from labkit.ptx import load4

THREADS = 256
WARPS = THREADS // 32
VECTORS = 4
CHUNK = 4 * VECTORS * THREADS  # elements that a block takes at a time
BLOCKS = 1024  # as many as 128 SMs hold; with fewer SMs they come in waves


@cuda.jit
def dot(x, y, partials):
    x_own = cuda.local.array((VECTORS, 4), np.float32)
    y_own = cuda.local.array((VECTORS, 4), np.float32)
    of_warps = cuda.shared.array(WARPS, np.float32)
    t = cuda.threadIdx.x
    whole = x.size // CHUNK * CHUNK
    total = np.float32(0)
    for start in range(cuda.blockIdx.x * CHUNK, whole, cuda.gridDim.x * CHUNK):
        for vector in range(VECTORS):
            i = start + 4 * (vector * THREADS + t)
            x_own[vector, 0], x_own[vector, 1], x_own[vector, 2], x_own[vector, 3] = load4(x, i)
            y_own[vector, 0], y_own[vector, 1], y_own[vector, 2], y_own[vector, 3] = load4(y, i)
        for vector in range(VECTORS):
            for e in range(4):
                total += x_own[vector, e] * y_own[vector, e]
    for i in range(whole + cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] * y[i]

    total = block_sum(total, of_warps)
    if t == 0:
        partials[cuda.blockIdx.x] = total


@cuda.jit
def add_partials(partials, out):
    of_warps = cuda.shared.array(WARPS, np.float32)
    total = np.float32(0)
    for i in range(cuda.threadIdx.x, partials.size, THREADS):
        total += partials[i]
    total = block_sum(total, of_warps)
    if cuda.threadIdx.x == 0:
        out[0] = total


def launch(x, y, out, partials=None, stream=0):
    """out[0] = the dot product of x and y.

    `partials` is room for BLOCKS sums on the device; give it to have none made for each call.
    """
    check_vectors(x=x, y=y)
    check_vectors(out=out)
    if partials is None:
        partials = cuda.device_array(BLOCKS, np.float32)
    suited(dot, x, y)[BLOCKS, THREADS, stream](x, y, partials)
    add_partials[1, THREADS, stream](partials, out)
