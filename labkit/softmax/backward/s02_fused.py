"""A block takes a row, and reads it twice in one kernel: for its sum, and to write dx.

Costs, in passes over memory, each of them a matrix read or written once:

    5       fused: dy and y read twice, dx written
    5       passes in all

L1 and L2 find what is read again, if the rows under way fit there. Limited by loads of 4 bytes that wait for one
another. `s03_on_chip` reads a row once.

Parts: `block_all_sum` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.sums import block_all_sum

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def fused(dy, y, dx):
    of_warps = cuda.shared.array(WARPS, np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, y.shape[1]
    total = np.float32(0)
    for i in range(t, columns, THREADS):
        total += y[row, i] * dy[row, i]
    total = block_all_sum(total, of_warps)
    for i in range(t, columns, THREADS):
        dx[row, i] = y[row, i] * (dy[row, i] - total)


def launches(dy, y, dx, problem):
    """dx of each row."""
    problem.check(dy, y, dx)
    return [Launch(fused, problem.rows, THREADS, (dy, y, dx))]
