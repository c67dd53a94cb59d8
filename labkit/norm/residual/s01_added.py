"""Three operations in separate kernels after the statistics: batch norm, the sum with the residual, and ReLU.

Costs in passes over memory, each of which reads or writes all values once:

    1       shifted: x read
    2       normalised: x read, y written
    3       added: y and the residual read, y written
    2       rectified: y read, written
    8       passes in all

Limited by memory. `s02_fused` does everything after the statistics in one pass.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.images import as_planes
from labkit.norm.residual import SUPPORTED
from labkit.parts.moments import MOMENT_FIELDS, block_moments

FORMATS = (FP32,)
WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def shifted(x, mean, variance, running_mean, running_variance, images, momentum):
    warp_moments = cuda.shared.array((MOMENT_FIELDS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = first = shifted_sum = shifted_squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            first = value if count == np.float32(0) else first
            count += np.float32(1)
            shifted_sum += value - first
            shifted_squares += (value - first) * (value - first)
    shifted_mean = shifted_sum / max(count, np.float32(1))
    num_values, average, mean_low, m2 = block_moments(
        count, first, shifted_mean, shifted_squares - shifted_sum * shifted_mean, warp_moments
    )
    if t == 0:
        average += mean_low
        mean[c] = average
        variance[c] = m2 / num_values  # m2: sum of squared deviations from the mean
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
def added(y, residual):
    plane = cuda.blockIdx.x
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        y[plane, i] += residual[plane, i]


@cuda.jit
def rectified(y):
    plane = cuda.blockIdx.x
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        value = y[plane, i]
        y[plane, i] = np.float32(0) if value < np.float32(0) else value  # a NaN is not below zero


def launches(x, residual, weight, bias, y, mean, variance, running_mean, running_variance, problem):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, residual, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED)
    x, residual, y = as_planes(x, residual, y)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    statistics = mean, variance, running_mean, running_variance
    lines = [
        Launch(shifted, *channels, (x, *statistics, problem.N, np.float32(problem.batch_weight))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
        Launch(added, *planes, (y, residual)),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
