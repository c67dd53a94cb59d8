"""One pass finds both statistics: it sums the values and their squares.

The variance is the mean of the squares less the square of the mean. Where the mean is many spreads from zero these are
two large numbers that are nearly the same, and what is left of them is what rounding made of it.

Costs, in passes over memory, each of them all values read or written once:

    1       sums: read
    2       normalised: read, written
    2       rectified: read, written
    5       passes in all

Wrong where the squared mean is 1e5 variances or more: float32 has 7 digits. `s04_welford` subtracts no squares.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.ladder import Launch
from labkit.norm.batch import ORDINARY, TAKES
from labkit.norm.problem import planes_of
from labkit.parts.sums import block_sum

EXAMPLES = ORDINARY  # hard ones come out wrong
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def sums(x, mean, variance, running_mean, running_variance, images, factor):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    values = np.float32(images * x.shape[1])
    total = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            total += value
            squares += value * value
    total, squares = block_sum(total, of_warps[0]), block_sum(squares, of_warps[1])
    if t == 0:
        average = total / values
        squares -= total * average
        squares = np.float32(0) if squares < np.float32(0) else squares  # which rounding can make it
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
    x, y = reshape(x, *planes_of(x.shape)), reshape(y, *planes_of(y.shape))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    kept = mean, variance, running_mean, running_variance
    lines = [
        Launch(sums, *channels, (x, *kept, problem.N, np.float32(problem.factor))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
