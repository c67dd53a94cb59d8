"""One kernel goes along the rows for dx, and another down the columns for dweight and dbias.

A block takes a row and reads it twice: for its two sums, and to write dx. A thread takes a column, and adds up what it
finds there, row by row.

Costs, in passes over memory, each of them a matrix read or written once:

    5       gradients: dy and x read twice, dx written
    2       two_kernels: dy and x read
    7       passes in all

Limited by the columns: a thread has one load of each matrix under way, and there are as many threads as columns.
`s02_split` has more of them.

Parts: `block_all_sum2` of `labkit.parts.sums`.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward import WIDTHS, benched
from labkit.parts.sums import block_all_sum2

FORMATS = (FP32,)
BENCHED = benched(*WIDTHS[2:])  # narrow ones take long
CENTRED = True  # not so in RMS norm
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def gradients(dy, x, weight, mean, rstd, dx):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    values = np.float32(columns)
    average, scale = np.float32(0), rstd[row]
    if CENTRED:
        average = mean[row]
    of_g = of_product = np.float32(0)
    for i in range(t, columns, THREADS):
        g = dy[row, i] * weight[i]
        of_g += g
        of_product += g * ((x[row, i] - average) * scale)
    of_g, of_product = block_all_sum2(of_g, of_product, of_warps)
    if CENTRED:
        of_g /= values
    else:
        of_g = np.float32(0)
    of_product /= values
    for i in range(t, columns, THREADS):
        normal = (x[row, i] - average) * scale
        dx[row, i] = (dy[row, i] * weight[i] - of_g - normal * of_product) * scale


@cuda.jit(launch_bounds=THREADS)
def two_kernels(dy, x, mean, rstd, dweight, dbias):
    i = cuda.grid(1)
    if i < x.shape[1]:
        of_weight = of_bias = np.float32(0)
        for row in range(x.shape[0]):
            gradient, normal = dy[row, i], x[row, i]
            if CENTRED:
                normal -= mean[row]
                of_bias += gradient
            of_weight += gradient * (normal * rstd[row])
        dweight[i] = of_weight
        if CENTRED:
            dbias[i] = of_bias


@cache
def kernels_for(is_centred: bool):
    """The kernels, or their copies for RMS norm."""
    return tuple(specialise(kernel, CENTRED=is_centred) for kernel in (gradients, two_kernels))


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    along, down = kernels_for(problem.is_centred)
    return [
        Launch(along, problem.rows, THREADS, (dy, x, weight, mean, rstd, dx)),
        Launch(down, -(-problem.columns // THREADS), THREADS, (dy, x, mean, rstd, dweight, dbias)),
    ]
