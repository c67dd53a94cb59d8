"""Two passes over x compute the statistics; results that can be recomputed are not stored.

The first pass computes a rough mean. The second sums the squared deviations from it, and the deviations too: without
rounding these would add up to zero, so that their sum is the error of the mean. It corrects both statistics, even if
the mean is many spreads from zero. (Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983,
equation 1.7.) Subtracting the mean, dividing and scaling are one line, in registers.

Costs in passes over memory, each of which reads or writes all values once:

    2       two_passes: read, and read again
    2       normalised: read, written
    2       rectified: read, written
    6       passes in all

Limited by memory. `s03_sums` computes both statistics in one pass.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import block_sum

WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def two_passes(x, mean, variance, running_mean, running_variance, images, momentum):
    warp_partials = cuda.shared.array((3, WARPS), np.float32)
    rough_mean = cuda.shared.array(1, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    num_values = np.float32(images * x.shape[1])
    x_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            x_sum += x[n * channels + c, i]
    x_sum = block_sum(x_sum, warp_partials[0])
    if t == 0:
        rough_mean[0] = x_sum / num_values
    cuda.syncthreads()
    deviations = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            difference = x[n * channels + c, i] - rough_mean[0]
            deviations += difference
            squares += difference * difference
    deviations, squares = block_sum(deviations, warp_partials[1]), block_sum(squares, warp_partials[2])
    if t == 0:
        average = rough_mean[0] + deviations / num_values
        squares -= deviations * deviations / num_values
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
        Launch(two_passes, *channels, (x, *statistics, problem.N, np.float32(problem.batch_weight))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
