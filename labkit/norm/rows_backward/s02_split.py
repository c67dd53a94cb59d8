"""Many blocks share a column: each adds some of the rows, and another launch merges the partial sums.

Narrow rows have few columns, and one thread per column leaves most of the GPU idle. Blocks write partial sums to
memory, and the merge adds them in a fixed order, whichever block finished first: two runs give the same bits.

Costs in passes over memory, each of which reads or writes a matrix once:

    5       gradients: dy and x read twice, dx written
    2       split: dy and x read
    0       merge_partials: one row per block of a column
    7       passes in all

Limited by memory. `s03_sums_first` writes dx in the kernel of the columns.

Parts: `block_all_sum2` of `labkit.parts.sums`.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import block_all_sum2

FORMATS = (FP32,)
CENTRED = True  # False for RMS norm
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS
specialise_once = cache(specialise)  # one copy per kind of norm
BLOCKS_PER_SM = 8  # of the kernel of columns: all blocks are resident


@cuda.jit(launch_bounds=THREADS)
def gradients(dy, x, weight, mean, rstd, dx):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    num_values = np.float32(columns)
    average, scale = np.float32(0), rstd[row]
    if CENTRED:
        average = mean[row]
    g_sum = gx_sum = np.float32(0)
    for i in range(t, columns, THREADS):
        g = dy[row, i] * weight[i]
        g_sum += g
        gx_sum += g * ((x[row, i] - average) * scale)
    g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials)
    if CENTRED:
        g_sum /= num_values
    else:
        g_sum = np.float32(0)
    gx_sum /= num_values
    for i in range(t, columns, THREADS):
        x_hat = (x[row, i] - average) * scale
        dx[row, i] = (dy[row, i] * weight[i] - g_sum - x_hat * gx_sum) * scale


@cuda.jit(launch_bounds=THREADS)
def split(dy, x, mean, rstd, partials):
    i, block, num_blocks = cuda.grid(1), cuda.blockIdx.y, cuda.gridDim.y
    if i < x.shape[1]:
        dweight_sum = dbias_sum = np.float32(0)
        for row in range(block, x.shape[0], num_blocks):
            g, x_hat = dy[row, i], x[row, i]
            if CENTRED:
                x_hat -= mean[row]
                dbias_sum += g
            dweight_sum += g * (x_hat * rstd[row])
        partials[block, i] = dweight_sum
        if CENTRED:
            partials[num_blocks + block, i] = dbias_sum


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    row_kernel = specialise_once(gradients, CENTRED=problem.is_centred)
    column_kernel = specialise_once(split, CENTRED=problem.is_centred)
    row_blocks = -(-problem.columns // THREADS)
    max_blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    column_blocks = max(1, min(max_blocks // row_blocks, problem.rows))
    partials = allocate_partials(problem, column_blocks, workspace)
    return [
        Launch(row_kernel, problem.rows, THREADS, (dy, x, weight, mean, rstd, dx)),
        Launch(column_kernel, (row_blocks, column_blocks), THREADS, (dy, x, mean, rstd, partials)),
        merge_launch(problem, partials, dweight, dbias),
    ]
