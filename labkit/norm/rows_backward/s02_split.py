"""Many blocks share a column: each adds up some of the rows, and another launch merges what they found.

Where rows are narrow there are few columns, and one thread for each left most of the GPU idle. What blocks find goes to
memory, and the merge adds it up in one order, whichever block was first: two runs give the same bits.

Costs, in passes over memory, each of them a matrix read or written once:

    5       gradients: dy and x read twice, dx written
    2       split: dy and x read
    0       merged: as many rows as there are blocks to a column
    7       passes in all

Limited by memory. `s03_sums_first` writes dx on the way down the columns.

Parts: `block_all_sum2` of `labkit.parts.sums`.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward.parts import merge, room
from labkit.parts.sums import block_all_sum2

FORMATS = (FP32,)
CENTRED = True  # not so in RMS norm
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS
IN_SM = 8  # blocks that go down columns, of an SM: all run at once


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
def split(dy, x, mean, rstd, parts):
    i, part, count = cuda.grid(1), cuda.blockIdx.y, cuda.gridDim.y
    if i < x.shape[1]:
        of_weight = of_bias = np.float32(0)
        for row in range(part, x.shape[0], count):
            gradient, normal = dy[row, i], x[row, i]
            if CENTRED:
                normal -= mean[row]
                of_bias += gradient
            of_weight += gradient * (normal * rstd[row])
        parts[part, i] = of_weight
        if CENTRED:
            parts[count + part, i] = of_bias


@cache
def kernels_for(is_centred: bool):
    """The kernels, or their copies for RMS norm."""
    return tuple(specialise(kernel, CENTRED=is_centred) for kernel in (gradients, split))


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    along, down = kernels_for(problem.is_centred)
    wide = -(-problem.columns // THREADS)
    at_once = IN_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    count = max(1, min(at_once // wide, problem.rows))
    parts = room(problem, count, workspace)
    return [
        Launch(along, problem.rows, THREADS, (dy, x, weight, mean, rstd, dx)),
        Launch(down, (wide, count), THREADS, (dy, x, mean, rstd, parts)),
        merge(problem, parts, dweight, dbias),
    ]
