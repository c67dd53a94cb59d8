"""Three operations, a kernel each after the statistics: batch norm, the residual added to it, and ReLU.

Costs, in passes over memory, each of them all values read or written once:

    1       shifted: x read
    2       normalised: x read, y written
    3       added: y and the residual read, y written
    2       rectified: y read, written
    8       passes in all

Limited by memory. `s02_fused` does all that follows the statistics in one pass.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.problem import planes_of
from labkit.norm.residual import TAKES
from labkit.parts.moments import ROWS, block_moments

FORMATS = (FP32,)
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def shifted(x, mean, variance, running_mean, running_variance, images, factor):
    of_warps = cuda.shared.array((ROWS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = first = total = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            first = value if count == np.float32(0) else first
            count += np.float32(1)
            total += value - first
            squares += (value - first) * (value - first)
    share = total / max(count, np.float32(1))
    values, average, rest, squares = block_moments(count, first, share, squares - total * share, of_warps)
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
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, residual, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES)
    x, residual, y = (reshaped(X, *planes_of(X.shape)) for X in (x, residual, y))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    kept = mean, variance, running_mean, running_variance
    lines = [
        Launch(shifted, *channels, (x, *kept, problem.N, np.float32(problem.factor))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
        Launch(added, *planes, (y, residual)),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
