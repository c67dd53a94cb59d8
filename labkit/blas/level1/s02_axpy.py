"""axpy: y = alpha * x + y, four neighbouring elements per thread.

Costs, for n elements:

    3 * n * 4               bytes: x and y read, y written
    2 * n                   FLOPs: 1/6 FLOP/byte

Limited by DRAM bandwidth.

Parts: `load_four`, `store_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`.
"""

from labkit import cuda
from labkit.blas.problem import Axpy, as_float32_factor, check_vectors
from labkit.ladder import Launch
from labkit.parts.fours import load_four, store_four
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment

PROBLEM = Axpy
THREADS = 256
CHUNK = 4 * THREADS  # elements per block


@cuda.jit
def axpy(alpha, x, y):
    i = 4 * cuda.grid(1)
    if i + 4 <= x.size:
        x0, x1, x2, x3 = load_four(x, i)
        y0, y1, y2, y3 = load_four(y, i)
        store_four(y, i, y0 + alpha * x0, y1 + alpha * x1, y2 + alpha * x2, y3 + alpha * x3)
    else:
        for j in range(i, x.size):
            y[j] += alpha * x[j]


def launches(alpha, x, y):
    """y = alpha * x + y."""
    n = check_vectors(x=x, y=y)
    kernel = specialise_alignment(axpy, aligned=can_load_vectors(x, y))
    return [Launch(kernel, -(-n // CHUNK), THREADS, (as_float32_factor("alpha", alpha), x, y))]
