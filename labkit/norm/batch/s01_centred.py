"""Six kernels, one per line of the formula; each reads what the previous one wrote to memory.

The lines are: the mean of a channel; all values minus the mean; the mean of their squares, which is the variance;
division by its root; times weight plus bias; ReLU. A block computes the mean of one channel, with one image per warp.
In the other kernels a block computes one line for one plane, the pixels of one image and channel.

Costs in passes over memory, each of which reads or writes all values once:

    1       means: read
    2       centred: read, written
    1       variances: read
    2       divided: read, written
    2       scaled: read, written
    2       rectified: read, written
    10      passes in all

Limited by memory: a few operations per value, and 40 bytes. `s02_two_passes` stores nothing that it can recompute.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch import EASY_EXAMPLES, SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import block_sum

EXAMPLES = EASY_EXAMPLES  # means far from zero are wrong: a sum of large numbers loses their differences
WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def means(x, mean, running_mean, images, momentum):
    warp_partials = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    x_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            x_sum += x[n * channels + c, i]
    x_sum = block_sum(x_sum, warp_partials)
    if t == 0:
        mean[c] = x_sum / np.float32(images * x.shape[1])
        running_mean[c] = (np.float32(1) - momentum) * running_mean[c] + momentum * mean[c]


@cuda.jit
def centred(x, mean, y):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        y[plane, i] = x[plane, i] - mean[c]


@cuda.jit(launch_bounds=WARP * WARPS)
def variances(y, variance, running_variance, images, momentum):
    warp_partials = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    m2 = np.float32(0)  # sum of squared deviations from the mean
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, y.shape[1], WARP):
            difference = y[n * channels + c, i]
            m2 += difference * difference
    m2 = block_sum(m2, warp_partials)
    if t == 0:
        values = images * y.shape[1]
        variance[c] = m2 / np.float32(values)
        running_variance[c] = (np.float32(1) - momentum) * running_variance[c] + momentum * m2 / np.float32(values - 1)


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
    """Return the launches for y and all statistics of images in NCHW."""
    problem.check(x, weight, bias, y, mean, variance, running_mean, running_variance, supported=SUPPORTED)
    x, y = as_planes(x, y)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    sizes = problem.N, np.float32(problem.batch_weight)
    lines = [
        Launch(means, *channels, (x, mean, running_mean, *sizes)),
        Launch(centred, *planes, (x, mean, y)),
        Launch(variances, *channels, (y, variance, running_variance, *sizes)),
        Launch(divided, *planes, (y, variance, np.float32(problem.eps))),
        Launch(scaled, *planes, (y, weight, bias)),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
