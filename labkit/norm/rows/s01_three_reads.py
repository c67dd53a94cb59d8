"""A block takes a row, and reads it three times: for its mean, for its variance, and to write y.

The second read sums the squares of how far each value is from the mean, and also these distances: they would add up to
zero if the mean were not rounded. Their sum puts both statistics right. (Chan, Golub and LeVeque, Algorithms for
Computing the Sample Variance, 1983, equation 1.7.) RMS norm sums squares only, and makes one pass less.

Costs, in passes over memory, each of them the matrix read or written once:

    4       three_reads: read three times, written
    4       passes in all

L1 and L2 find what is read again, if the rows under way fit there. Limited by loads of 4 bytes that wait for one
another. `s02_on_chip` reads a row once.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`.
"""

from functools import cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.sums import block_all_sum, block_all_sum2

FORMATS = (FP32,)
CENTRED = True  # not so in RMS norm
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def three_reads(x, weight, bias, y, mean, rstd, eps):
    of_warps = cuda.shared.array((3, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    values = np.float32(columns)
    total = away = squares = average = rest = np.float32(0)
    if CENTRED:
        for i in range(t, columns, THREADS):
            total += x[row, i]
        average = block_all_sum(total, of_warps[0]) / values
    for i in range(t, columns, THREADS):
        value = x[row, i] - average
        away += value
        squares += value * value
    away, squares = block_all_sum2(away, squares, of_warps[1:])
    if CENTRED:
        rest = away / values
        squares -= rest * rest * values
        squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
    scale = np.float32(1) / sqrt(squares / values + eps)
    if t == 0:
        rstd[row] = scale
        if CENTRED:
            mean[row] = average + rest
    for i in range(t, columns, THREADS):
        value = (x[row, i] - average - rest) * scale * weight[i]
        if CENTRED:
            value += bias[i]
        y[row, i] = value


@cache
def kernel_for(is_centred: bool):
    """The kernel, or its copy for RMS norm."""
    return specialise(three_reads, CENTRED=is_centred)


def launches(x, weight, bias, y, mean, rstd, problem):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd)
    arrays = (x, weight, bias, y, mean, rstd) if problem.is_centred else (x, weight, weight, y, rstd, rstd)
    return [Launch(kernel_for(problem.is_centred), problem.rows, THREADS, (*arrays, np.float32(problem.eps)))]
