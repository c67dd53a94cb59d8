"""A block takes a row, and reads it three times: for its maximum, for the sum of exponentials, and to write y.

Without the maximum, exp(x) would be infinite from x = 89 on; relative to it no exponential is above 1. It is known only
at the end of the row, so that the sum has to wait for it.

Costs, in passes over memory, each of them the matrix read or written once:

    4       three_reads: read three times, written
    4       passes in all

L1 and L2 find what is read again, if the rows under way fit there. Limited by loads of 4 bytes that wait for one
another. `s02_online` sums before it knows the maximum.

Parts: `block_all_sum` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.sums import block_all_sum
from labkit.softmax.online import LEAST, exp, merge_block, warp_max

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def three_reads(x, y):
    of_warps = cuda.shared.array((3, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    maximum, total = LEAST, np.float32(0)
    for i in range(t, columns, THREADS):
        maximum = max(maximum, x[row, i])
    maximum, _ = merge_block(warp_max(maximum), total, of_warps[1:])
    for i in range(t, columns, THREADS):
        total += exp(x[row, i] - maximum)
    total = block_all_sum(total, of_warps[0])
    for i in range(t, columns, THREADS):
        y[row, i] = exp(x[row, i] - maximum) / total


def launches(x, y, problem):
    """y of each row."""
    problem.check(x, y)
    return [Launch(three_reads, problem.rows, THREADS, (x, y))]
