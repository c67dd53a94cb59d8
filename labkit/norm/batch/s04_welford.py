"""One pass updates the mean of the values so far and the squares around it; threads merge their moments.

Each value moves the mean by its share, and adds to the squares the product of its distances from the old and the new
mean: no two large numbers are subtracted. Two parts are merged by the distance of their means. (Welford, Note on a
Method for Calculating Corrected Sums of Squares and Products, 1962; Chan, Golub and LeVeque, Updating Formulae and a
Pairwise Algorithm for Computing Sample Variances, 1979.)

Costs in passes over memory, each of which reads or writes all values once:

    1       welford: read
    2       normalised: read, written
    2       rectified: read, written
    5       passes in all

Limited by one division per value, which waits for the previous one. The variance is off by up to 1% if neighbours in
float32 are so far apart around the mean that small steps towards it are lost. `s05_shifted` avoids both.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch import EASY_EXAMPLES, SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.moments import MOMENT_FIELDS, block_moments

EXAMPLES = EASY_EXAMPLES  # for means far from zero the variance is off by thousandths
WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def welford(x, mean, variance, running_mean, running_variance, images, momentum):
    warp_moments = cuda.shared.array((MOMENT_FIELDS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = average = m2 = np.float32(0)  # m2: sum of squared deviations from the mean
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            count += np.float32(1)
            value = x[n * channels + c, i]
            delta = value - average
            average += delta / count
            m2 += delta * (value - average)
    num_values, average, mean_low, m2 = block_moments(count, average, np.float32(0), m2, warp_moments)
    if t == 0:
        average += mean_low
        mean[c] = average
        variance[c] = m2 / num_values
        keep = np.float32(1) - momentum
        running_mean[c] = keep * running_mean[c] + momentum * average
        running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))


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
        Launch(welford, *channels, (x, *statistics, problem.N, np.float32(problem.batch_weight))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
