"""One kernel for each line of the formula, and each reads from memory what the one before wrote there.

The six lines are: the mean of a channel; all values minus it; the mean of their squares, which is the variance; divided
by its root; times the weight, plus the bias; ReLU. A block finds the mean of a channel, a warp an image after the
other, and a block computes a line for the plane of an image and a channel.

Costs, in passes over memory, each of them all values read or written once:

    1       means: read
    2       centred: read, written
    1       variances: read
    2       divided: read, written
    2       scaled: read, written
    2       rectified: read, written
    10      passes in all

Limited by memory: a few operations a value, and 40 bytes. `s02_two_passes` stores nothing that it can compute again.

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

EXAMPLES = ORDINARY  # hard ones come out wrong: the sum of large numbers loses what sets them apart
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def means(x, mean, running_mean, images, factor):
    of_warps = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    total = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            total += x[n * channels + c, i]
    total = block_sum(total, of_warps)
    if t == 0:
        mean[c] = total / np.float32(images * x.shape[1])
        running_mean[c] = (np.float32(1) - factor) * running_mean[c] + factor * mean[c]


@cuda.jit
def centred(x, mean, y):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        y[plane, i] = x[plane, i] - mean[c]


@cuda.jit(launch_bounds=WARP * WARPS)
def variances(y, variance, running_variance, images, factor):
    of_warps = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    total = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, y.shape[1], WARP):
            difference = y[n * channels + c, i]
            total += difference * difference
    total = block_sum(total, of_warps)
    if t == 0:
        values = images * y.shape[1]
        variance[c] = total / np.float32(values)
        running_variance[c] = (np.float32(1) - factor) * running_variance[c] + factor * total / np.float32(values - 1)


@cuda.jit
def divided(y, variance, eps):
    plane = cuda.blockIdx.x
    c = plane % variance.shape[0]
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        y[plane, i] /= sqrt(variance[c] + eps)


@cuda.jit
def scaled(y, weight, bias):
    plane = cuda.blockIdx.x
    c = plane % weight.shape[0]
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        y[plane, i] = y[plane, i] * weight[c] + bias[c]


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
    beside = problem.N, np.float32(problem.factor)
    lines = [
        Launch(means, *channels, (x, mean, running_mean, *beside)),
        Launch(centred, *planes, (x, mean, y)),
        Launch(variances, *channels, (y, variance, running_variance, *beside)),
        Launch(divided, *planes, (y, variance, np.float32(problem.eps))),
        Launch(scaled, *planes, (y, weight, bias)),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
