"""One read computes maximum and sum: a larger value rescales the sum of all earlier ones.

Each thread keeps its own maximum and sum. At the end those of a warp, and then those of all warps, are merged by the
same rescaling. (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.)

Costs in passes over memory, each of which reads or writes the matrix once:

    3       online: read twice, written
    3       passes in all

Two exponentials per value in place of one; one of the two is always exp(0). Limited by 4-byte loads, each of which must
be added before the next one. `s03_on_chip` reads a row once.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.softmax.online import LOWEST_FLOAT32, block_max_and_sum, exp, update_max_and_sum, warp_max_and_sum

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def online(x, y):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
    for i in range(t, columns, THREADS):
        row_max, row_sum = update_max_and_sum(row_max, row_sum, x[row, i])
    row_max, row_sum = warp_max_and_sum(row_max, row_sum)
    row_max, row_sum = block_max_and_sum(row_max, row_sum, warp_partials)
    for i in range(t, columns, THREADS):
        y[row, i] = exp(x[row, i] - row_max) / row_sum


def launches(x, y, problem):
    """Return the launch for y."""
    problem.check(x, y)
    return [Launch(online, problem.rows, THREADS, (x, y))]
