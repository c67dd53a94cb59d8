"""One pass computes both sums from the values in its registers.

Costs in passes over memory, each of which reads or writes all values once:

    3       masked: dy and x read, its result written
    2       both_sums: read, and x
    3       gradients: read, and x, dx written
    8       passes in all

Limited by memory. `s03_masked_again` does not store the masked gradient.

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
def both_sums(dx, x, mean, variance, dweight, dbias, images, eps):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    g_sum = gx_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g = dx[plane, i]
            g_sum += g
            gx_sum += g * (x[plane, i] - mean[c])
    g_sum, gx_sum = block_sum(g_sum, warp_partials[0]), block_sum(gx_sum, warp_partials[1])
    if t == 0:
        dbias[c] = g_sum
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
        Launch(both_sums, *channels, (dx, x, mean, variance, dweight, dbias, problem.N, eps)),
        Launch(gradients, *planes, (x, weight, mean, variance, dx, dweight, dbias, np.float32(problem.values), eps)),
    ]
