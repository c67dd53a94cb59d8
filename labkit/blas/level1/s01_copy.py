"""copy: y = x, four neighbouring elements per thread; a speed limit for any kernel that moves as many bytes.

Costs, for n elements:

    2 * n * 4               bytes: x read, y written
    0                       FLOPs

Limited by DRAM bandwidth.

Parts: `load_four`, `store_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`.
"""

from labkit import cuda
from labkit.blas.problem import Copy, check_vectors
from labkit.ladder import Launch
from labkit.parts.fours import load_four, store_four
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment

PROBLEM = Copy
THREADS = 256
CHUNK = 4 * THREADS  # elements per block


@cuda.jit
def copy(x, y):
    i = 4 * cuda.grid(1)
    if i + 4 <= x.size:
        a, b, c, d = load_four(x, i)
        store_four(y, i, a, b, c, d)
    else:
        for j in range(i, x.size):
            y[j] = x[j]


def launches(x, y):
    """y = x."""
    n = check_vectors(x=x, y=y)
    return [Launch(specialise_alignment(copy, aligned=can_load_vectors(x, y)), -(-n // CHUNK), THREADS, (x, y))]
