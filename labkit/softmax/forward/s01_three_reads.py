"""A block per row reads it three times: for the maximum, for the sum of exponentials, and to write y.

Without the maximum exp(x) would be infinite from x = 89 on; relative to it no exponential is above 1. The maximum is
known only at the end of the row, so that the sum has to wait for it.

Costs in passes over memory, each of which reads or writes the matrix once:

    4       three_reads: read three times, written
    4       passes in all

L1 and L2 serve the repeated reads, if the rows in flight fit. Limited by dependent 4-byte loads. `s02_online` sums
before the maximum is known.

Parts: `block_all_sum` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.sums import block_all_sum
from labkit.softmax.online import LOWEST_FLOAT32, block_max_and_sum, exp, warp_max

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def three_reads(x, y):
    warp_partials = cuda.shared.array((3, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
    for i in range(t, columns, THREADS):
        row_max = max(row_max, x[row, i])
    row_max, _ = block_max_and_sum(warp_max(row_max), row_sum, warp_partials[1:])
    for i in range(t, columns, THREADS):
        row_sum += exp(x[row, i] - row_max)
    row_sum = block_all_sum(row_sum, warp_partials[0])
    for i in range(t, columns, THREADS):
        y[row, i] = exp(x[row, i] - row_max) / row_sum


def launches(x, y, problem):
    """Return the launch for y."""
    problem.check(x, y)
    return [Launch(three_reads, problem.rows, THREADS, (x, y))]
