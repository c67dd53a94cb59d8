"""One kernel computes dx along the rows, another one dweight and dbias along the columns.

A block per row reads it twice: for its two sums, and to write dx. A thread per column adds its values row by row.

Costs in passes over memory, each of which reads or writes a matrix once:

    5       gradients: dy and x read twice, dx written
    2       two_kernels: dy and x read
    7       passes in all

Limited by the columns: a thread has one load of each matrix in flight, and there is one thread per column. `s02_split`
has more threads.

Parts: `block_all_sum2` of `labkit.parts.sums`.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward import WIDTHS, sizes_of_widths
from labkit.parts.sums import block_all_sum2

FORMATS = (FP32,)
BENCHED = sizes_of_widths(*WIDTHS[2:])  # narrow rows take long
CENTRED = True  # False for RMS norm
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS
specialise_once = cache(specialise)  # one copy per kind of norm


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
def two_kernels(dy, x, mean, rstd, dweight, dbias):
    i = cuda.grid(1)
    if i < x.shape[1]:
        dweight_sum = dbias_sum = np.float32(0)
        for row in range(x.shape[0]):
            g, x_hat = dy[row, i], x[row, i]
            if CENTRED:
                x_hat -= mean[row]
                dbias_sum += g
            dweight_sum += g * (x_hat * rstd[row])
        dweight[i] = dweight_sum
        if CENTRED:
            dbias[i] = dbias_sum


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    row_kernel = specialise_once(gradients, CENTRED=problem.is_centred)
    column_kernel = specialise_once(two_kernels, CENTRED=problem.is_centred)
    return [
        Launch(row_kernel, problem.rows, THREADS, (dy, x, weight, mean, rstd, dx)),
        Launch(column_kernel, -(-problem.columns // THREADS), THREADS, (dy, x, mean, rstd, dweight, dbias)),
    ]
