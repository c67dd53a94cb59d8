"""A block per row reads it three times: for the mean, for the variance, and to write y.

The second read sums the squared deviations from the mean, and the deviations too: without rounding these would add up
to zero. Their sum corrects both statistics. (Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance,
1983, equation 1.7.) RMS norm sums only squares, and makes one pass less.

Costs in passes over memory, each of which reads or writes the matrix once:

    4       three_reads: read three times, written
    4       passes in all

L1 and L2 serve the repeated reads, if the rows in flight fit. Limited by dependent 4-byte loads. `s02_on_chip` reads a
row once.

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
CENTRED = True  # False for RMS norm
WARP, WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * WARPS
specialise_once = cache(specialise)  # one copy per kind of norm


@cuda.jit(launch_bounds=THREADS)
def three_reads(x, weight, bias, y, mean, rstd, eps):
    warp_partials = cuda.shared.array((3, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    num_values = np.float32(columns)
    row_sum = deviations = squares = average = correction = np.float32(0)
    if CENTRED:
        for i in range(t, columns, THREADS):
            row_sum += x[row, i]
        average = block_all_sum(row_sum, warp_partials[0]) / num_values
    for i in range(t, columns, THREADS):
        value = x[row, i] - average
        deviations += value
        squares += value * value
    deviations, squares = block_all_sum2(deviations, squares, warp_partials[1:])
    if CENTRED:
        correction = deviations / num_values
        squares -= correction * correction * num_values
        squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
    scale = np.float32(1) / sqrt(squares / num_values + eps)
    if t == 0:
        rstd[row] = scale
        if CENTRED:
            mean[row] = average + correction
    for i in range(t, columns, THREADS):
        value = (x[row, i] - average - correction) * scale * weight[i]
        if CENTRED:
            value += bias[i]
        y[row, i] = value


def launches(x, weight, bias, y, mean, rstd, problem):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd)
    arrays = (x, weight, bias, y, mean, rstd) if problem.is_centred else (x, weight, weight, y, rstd, rstd)
    kernel = specialise_once(three_reads, CENTRED=problem.is_centred)
    return [Launch(kernel, problem.rows, THREADS, (*arrays, np.float32(problem.eps)))]
