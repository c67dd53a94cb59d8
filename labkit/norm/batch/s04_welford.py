"""One pass keeps the mean of the values so far, and the squares about it; what the threads found is merged.

Each value moves the mean by its share, and adds to the squares what it is away from the mean before and after: no two
large numbers are subtracted. Two parts are merged by how far their means are apart. (Welford, Note on a Method for
Calculating Corrected Sums of Squares and Products, 1962; Chan, Golub and LeVeque, Updating Formulae and a Pairwise
Algorithm for Computing Sample Variances, 1979.)

Costs, in passes over memory, each of them all values read or written once:

    1       welford: read
    2       normalised: read, written
    2       rectified: read, written
    5       passes in all

Limited by the division for each value, which waits for the one before. The variance is off by up to a hundredth where
neighbours in float32 are so far apart about the mean that small steps towards it are lost. `s05_shifted` needs neither.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.ladder import Launch
from labkit.norm.batch import ORDINARY, TAKES
from labkit.norm.problem import planes_of
from labkit.parts.moments import ROWS, block_moments

EXAMPLES = ORDINARY  # the variance of hard ones is off by thousandths
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def welford(x, mean, variance, running_mean, running_variance, images, factor):
    of_warps = cuda.shared.array((ROWS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = average = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            count += np.float32(1)
            value = x[n * channels + c, i]
            away = value - average
            average += away / count
            squares += away * (value - average)
    values, average, rest, squares = block_moments(count, average, np.float32(0), squares, of_warps)
    if t == 0:
        average += rest
        mean[c] = average
        variance[c] = squares / values
        keep = np.float32(1) - factor
        running_mean[c] = keep * running_mean[c] + factor * average
        running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))


@cuda.jit
def normalised(x, mean, variance, weight, bias, y, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    scale = weight[c] / sqrt(variance[c] + eps)
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        y[plane, i] = (x[plane, i] - mean[c]) * scale + bias[c]


@cuda.jit
def rectified(y):
    plane = cuda.blockIdx.x
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        value = y[plane, i]
        y[plane, i] = np.float32(0) if value < np.float32(0) else value  # a NaN is not below zero


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    problem.check(x, weight, bias, y, mean, variance, running_mean, running_variance, takes=TAKES)
    x, y = reshaped(x, *planes_of(x.shape)), reshaped(y, *planes_of(y.shape))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    kept = mean, variance, running_mean, running_variance
    lines = [
        Launch(welford, *channels, (x, *kept, problem.N, np.float32(problem.factor))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
