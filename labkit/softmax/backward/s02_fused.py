"""A block per row reads it twice in one kernel: for its sum, and to write dx.

Costs in passes over memory, each of which reads or writes a matrix once:

    5       fused: dy and y read twice, dx written
    5       passes in all

L1 and L2 serve the repeated reads, if the rows in flight fit. Limited by dependent 4-byte loads. `s03_on_chip` reads a
row once.

Parts: `block_all_sum` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.sums import block_all_sum

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def fused(dy, y, dx):
    warp_partials = cuda.shared.array(WARPS, np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, y.shape[1]
    row_sum = np.float32(0)
    for i in range(t, columns, THREADS):
        row_sum += y[row, i] * dy[row, i]
    row_sum = block_all_sum(row_sum, warp_partials)
    for i in range(t, columns, THREADS):
        dx[row, i] = y[row, i] * (dy[row, i] - row_sum)


def launches(dy, y, dx, problem):
    """Return the launches for dx."""
    problem.check(dy, y, dx)
    return [Launch(fused, problem.rows, THREADS, (dy, y, dx))]
