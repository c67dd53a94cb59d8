"""One pass computes both statistics from the sums of values and of their squares.

The variance is the mean of the squares minus the square of the mean. If the mean is many spreads from zero, these are
two large and nearly equal numbers, and rounding errors dominate their difference.

Costs in passes over memory, each of which reads or writes all values once:

    1       sums: read
    2       normalised: read, written
    2       rectified: read, written
    5       passes in all

Wrong if the squared mean is 1e5 variances or more: float32 has 7 digits. `s04_welford` subtracts no squares.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch import EASY_EXAMPLES, SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import block_sum

EXAMPLES = EASY_EXAMPLES  # wrong for means far from zero
WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def sums(x, mean, variance, running_mean, running_variance, images, momentum):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    num_values = np.float32(images * x.shape[1])
    x_sum = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            x_sum += value
            squares += value * value
    x_sum, squares = block_sum(x_sum, warp_partials[0]), block_sum(squares, warp_partials[1])
    if t == 0:
        average = x_sum / num_values
        squares -= x_sum * average
        squares = np.float32(0) if squares < np.float32(0) else squares  # by rounding
        mean[c] = average
        variance[c] = squares / num_values
        keep = np.float32(1) - momentum
        running_mean[c] = keep * running_mean[c] + momentum * average
        running_variance[c] = keep * running_variance[c] + momentum * squares / (num_values - np.float32(1))


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
    """Return the launches for y and all statistics of images in NCHW."""
    problem.check(x, weight, bias, y, mean, variance, running_mean, running_variance, supported=SUPPORTED)
    x, y = as_planes(x, y)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    statistics = mean, variance, running_mean, running_variance
    lines = [
        Launch(sums, *channels, (x, *statistics, problem.N, np.float32(problem.batch_weight))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
