"""Two passes over what is given find the statistics, and nothing is stored that can be computed again.

The first pass finds the mean, and the second sums the squares of how far each value is from it. It sums these
distances too: they would add up to zero if the mean were not rounded, and so they tell by how much it is off. That
puts both right, where the mean is many spreads from zero. (Chan, Golub and LeVeque, Algorithms for Computing the Sample
Variance, 1983, equation 1.7.) Taking away the mean, dividing, scaling are one line now, in registers.

Costs, in passes over memory, each of them all values read or written once:

    2       two_passes: read, and read again
    2       normalised: read, written
    2       rectified: read, written
    6       passes in all

Limited by memory. `s03_sums` finds both statistics in one pass.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.ladder import Launch
from labkit.norm.batch import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.sums import block_sum

WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def two_passes(x, mean, variance, running_mean, running_variance, images, factor):
    of_warps = cuda.shared.array((3, WARPS), np.float32)
    rough = cuda.shared.array(1, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    values = np.float32(images * x.shape[1])
    total = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            total += x[n * channels + c, i]
    total = block_sum(total, of_warps[0])
    if t == 0:
        rough[0] = total / values
    cuda.syncthreads()
    away = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            difference = x[n * channels + c, i] - rough[0]
            away += difference
            squares += difference * difference
    away, squares = block_sum(away, of_warps[1]), block_sum(squares, of_warps[2])
    if t == 0:
        average = rough[0] + away / values
        squares -= away * away / values
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
        Launch(two_passes, *channels, (x, *kept, problem.N, np.float32(problem.factor))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
