"""One kernel for each line of the formula, and each reads from memory what the one before wrote there.

The four lines are: the gradient where ReLU let y through, and 0 elsewhere; its sum, which is the gradient of the bias;
the sum of its products with normalised x, which is that of the weight; and the gradient of x. A block finds a sum of a
channel, a warp an image after the other, and a block computes a line for the plane of an image and a channel.

Whether ReLU let y through is computed again from x, which the sums need anyway: y need not be kept.

Costs, in passes over memory, each of them all values read or written once:

    3       masked: dy and x read, its result written
    1       biases: read
    2       weights: read, and x
    3       gradients: read, and x, dx written
    9       passes in all

Limited by memory: a few operations a value, and 36 bytes. `s02_both_sums` takes two sums of what it reads.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.ladder import Launch
from labkit.norm.batch_backward import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.sums import block_sum

WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit
def masked(dy, x, weight, bias, mean, variance, dx, eps, relu):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    scale = weight[c] / sqrt(variance[c] + eps)
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        y = (x[plane, i] - mean[c]) * scale + bias[c]
        g = dy[plane, i]
        dx[plane, i] = np.float32(0) if relu and y <= np.float32(0) else g  # a NaN is not below zero


@cuda.jit(launch_bounds=WARP * WARPS)
def biases(dx, dbias, images):
    of_warps = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    total = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, dx.shape[1], WARP):
            total += dx[n * channels + c, i]
    total = block_sum(total, of_warps)
    if t == 0:
        dbias[c] = total


@cuda.jit(launch_bounds=WARP * WARPS)
def weights(dx, x, mean, variance, dweight, images, eps):
    of_warps = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    products = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            products += dx[plane, i] * (x[plane, i] - mean[c])
    products = block_sum(products, of_warps)
    if t == 0:
        dweight[c] = products / sqrt(variance[c] + eps)


@cuda.jit
def gradients(x, weight, mean, variance, dx, dweight, dbias, values, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, share, slope = weight[c] / root, dbias[c] / values, dweight[c] / values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        dx[plane, i] = scale * (dx[plane, i] - share - (x[plane, i] - mean[c]) * slope)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem):
    """dx, dweight and dbias, of images in NCHW."""
    problem.check(dy, x, weight, bias, mean, variance, dx, dweight, dbias, takes=TAKES)
    dy, x, dx = (reshape(X, *planes_of(X.shape)) for X in (dy, x, dx))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    eps = np.float32(problem.eps)
    return [
        Launch(masked, *planes, (dy, x, weight, bias, mean, variance, dx, eps, problem.relu)),
        Launch(biases, *channels, (dx, dbias, problem.N)),
        Launch(weights, *channels, (dx, x, mean, variance, dweight, problem.N, eps)),
        Launch(gradients, *planes, (x, weight, mean, variance, dx, dweight, dbias, np.float32(problem.values), eps)),
    ]
