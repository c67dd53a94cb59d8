"""Four kernels, one per line of the formula; each reads what the previous one wrote to memory.

The lines are: the gradient where y passed ReLU, and 0 elsewhere; its sum, which is dbias; the sum of its products with
normalised x, which is dweight; and dx. A block computes a sum of one channel, with one image per warp. In the other
kernels a block computes one line for one plane, the pixels of one image and channel.

Whether y passed ReLU is recomputed from x, which the sums need anyway: y need not be stored.

Costs in passes over memory, each of which reads or writes all values once:

    3       masked: dy and x read, its result written
    1       biases: read
    2       weights: read, and x
    3       gradients: read, and x, dx written
    9       passes in all

Limited by memory: a few operations per value, and 36 bytes. `s02_both_sums` computes two sums of one load.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch_backward import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import block_sum

WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


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
    warp_partials = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    g_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, dx.shape[1], WARP):
            g_sum += dx[n * channels + c, i]
    g_sum = block_sum(g_sum, warp_partials)
    if t == 0:
        dbias[c] = g_sum


@cuda.jit(launch_bounds=WARP * WARPS)
def weights(dx, x, mean, variance, dweight, images, eps):
    warp_partials = cuda.shared.array(WARPS, np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    gx_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            gx_sum += dx[plane, i] * (x[plane, i] - mean[c])
    gx_sum = block_sum(gx_sum, warp_partials)
    if t == 0:
        dweight[c] = gx_sum / sqrt(variance[c] + eps)


@cuda.jit
def gradients(x, weight, mean, variance, dx, dweight, dbias, num_values, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, g_mean, slope = weight[c] / root, dbias[c] / num_values, dweight[c] / num_values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        dx[plane, i] = scale * (dx[plane, i] - g_mean - (x[plane, i] - mean[c]) * slope)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem):
    """Return the launches for dx, dweight and dbias of images in NCHW."""
    problem.check(dy, x, weight, bias, mean, variance, dx, dweight, dbias, supported=SUPPORTED)
    dy, x, dx = as_planes(dy, x, dx)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    eps = np.float32(problem.eps)
    return [
        Launch(masked, *planes, (dy, x, weight, bias, mean, variance, dx, eps, problem.relu)),
        Launch(biases, *channels, (dx, dbias, problem.N)),
        Launch(weights, *channels, (dx, x, mean, variance, dweight, problem.N, eps)),
        Launch(gradients, *planes, (x, weight, mean, variance, dx, dweight, dbias, np.float32(problem.values), eps)),
    ]
