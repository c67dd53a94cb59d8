"""One pass finds both sums, of what it has in registers.

Costs, in passes over memory, each of them all values read or written once:

    3       masked: dy and x read, its result written
    2       both_sums: read, and x
    3       gradients: read, and x, dx written
    8       passes in all

Limited by memory. `s03_masked_again` does not store what ReLU let through.

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
def both_sums(dx, x, mean, variance, dweight, dbias, images, eps):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    total = products = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g = dx[plane, i]
            total += g
            products += g * (x[plane, i] - mean[c])
    total, products = block_sum(total, of_warps[0]), block_sum(products, of_warps[1])
    if t == 0:
        dbias[c] = total
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
        Launch(both_sums, *channels, (dx, x, mean, variance, dweight, dbias, problem.N, eps)),
        Launch(gradients, *planes, (x, weight, mean, variance, dx, dweight, dbias, np.float32(problem.values), eps)),
    ]
