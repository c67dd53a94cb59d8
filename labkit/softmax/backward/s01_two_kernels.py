"""One kernel sums y * dy of each row, and another one, with a thread per value, writes dx.

Costs in passes over memory, each of which reads or writes a matrix once:

    2       row_sums: dy and y read
    3       two_kernels: dy and y read, dx written
    5       passes in all

The second kernel starts after the first has ended, and L2 no longer holds what the first kernel read at its start.
Limited by memory, and by 4-byte loads. `s02_fused` reads a row again at once.

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
COLUMNS = 1024  # per block of the second kernel


@cuda.jit(launch_bounds=THREADS)
def row_sums(dy, y, sums):
    warp_partials = cuda.shared.array(WARPS, np.float32)
    row, t, row_sum = cuda.blockIdx.x, cuda.threadIdx.x, np.float32(0)
    for i in range(t, y.shape[1], THREADS):
        row_sum += y[row, i] * dy[row, i]
    row_sum = block_all_sum(row_sum, warp_partials)
    if t == 0:
        sums[row] = row_sum


@cuda.jit(launch_bounds=THREADS)
def two_kernels(dy, y, sums, dx):
    row, first = cuda.blockIdx.x, cuda.blockIdx.y * COLUMNS
    for i in range(first + cuda.threadIdx.x, min(first + COLUMNS, y.shape[1]), THREADS):
        dx[row, i] = y[row, i] * (dy[row, i] - sums[row])


def launches(dy, y, dx, problem, workspace):
    """Return the launches for dx."""
    problem.check(dy, y, dx)
    sums = workspace.array("sums", (problem.rows,), np.float32)
    return [
        Launch(row_sums, problem.rows, THREADS, (dy, y, sums)),
        Launch(two_kernels, (problem.rows, -(-problem.columns // COLUMNS)), THREADS, (dy, y, sums, dx)),
    ]
