"""axpy: y = alpha * x + y, one chunk a block.

Each thread first has 2 * VECTORS loads of 16 bytes under way, then stores: had it stored between them, the later
loads would have to wait, since x and y might overlap for all the compiler knows. The block whose chunk sticks out
takes its elements one by one.

Costs, for n elements:

    3 * n * 4               bytes: x and y read, y written
    2 * n                   FLOPs: a sixth of one a byte

Limited by DRAM bandwidth.
"""

import numpy as np

from labkit import cuda
from labkit.blas.access import suited
from labkit.blas.problem import check_vectors
from labkit.ptx import load4, store4

THREADS = 256
VECTORS = 2
CHUNK = 4 * VECTORS * THREADS  # elements of a block


@cuda.jit
def axpy(alpha, x, y):
    x_own = cuda.local.array((VECTORS, 4), np.float32)
    y_own = cuda.local.array((VECTORS, 4), np.float32)
    t = cuda.threadIdx.x
    start = cuda.blockIdx.x * CHUNK
    if start + CHUNK <= x.size:
        for vector in range(VECTORS):
            i = start + 4 * (vector * THREADS + t)
            x_own[vector, 0], x_own[vector, 1], x_own[vector, 2], x_own[vector, 3] = load4(x, i)
            y_own[vector, 0], y_own[vector, 1], y_own[vector, 2], y_own[vector, 3] = load4(y, i)
        for vector in range(VECTORS):
            i = start + 4 * (vector * THREADS + t)
            for e in range(4):
                y_own[vector, e] += alpha * x_own[vector, e]
            store4(y, i, y_own[vector, 0], y_own[vector, 1], y_own[vector, 2], y_own[vector, 3])
    else:
        for i in range(start + t, x.size, THREADS):
            y[i] += alpha * x[i]


def launch(alpha, x, y, stream=0):
    """y = alpha * x + y."""
    n = check_vectors(x=x, y=y)
    suited(axpy, x, y)[-(-n // CHUNK), THREADS, stream](np.float32(alpha), x, y)
