"""The sums and the gradient of x each find out again what ReLU let through: nothing is stored in between.

Three operations a value are done twice, and three passes over memory fall away.

Costs, in passes over memory, each of them all values read or written once:

    2       both_sums: dy and x read
    3       masked_again: dy and x read, dx written
    5       passes in all

No fewer are needed, unless a channel stays on the chip in between. Limited by memory, of which `s04_split` asks for
more at a time.

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


@cuda.jit(launch_bounds=WARP * WARPS)
def both_sums(dy, x, weight, bias, mean, variance, dweight, dbias, images, eps, relu):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    root = sqrt(variance[c] + eps)
    scale = weight[c] / root
    total = products = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g, away = dy[plane, i], x[plane, i] - mean[c]
            g = np.float32(0) if relu and away * scale + bias[c] <= np.float32(0) else g  # a NaN is not below zero
            total += g
            products += g * away
    total, products = block_sum(total, of_warps[0]), block_sum(products, of_warps[1])
    if t == 0:
        dbias[c] = total
        dweight[c] = products / root


@cuda.jit
def masked_again(dy, x, weight, bias, mean, variance, dx, dweight, dbias, values, eps, relu):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, share, slope = weight[c] / root, dbias[c] / values, dweight[c] / values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        g, away = dy[plane, i], x[plane, i] - mean[c]
        g = np.float32(0) if relu and away * scale + bias[c] <= np.float32(0) else g  # a NaN is not below zero
        dx[plane, i] = scale * (g - share - away * slope)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem):
    """dx, dweight and dbias, of images in NCHW."""
    problem.check(dy, x, weight, bias, mean, variance, dx, dweight, dbias, takes=TAKES)
    dy, x, dx = (reshape(X, *planes_of(X.shape)) for X in (dy, x, dx))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    given, eps, values = (dy, x, weight, bias, mean, variance), np.float32(problem.eps), np.float32(problem.values)
    return [
        Launch(both_sums, *channels, (*given, dweight, dbias, problem.N, eps, problem.relu)),
        Launch(masked_again, *planes, (*given, dx, dweight, dbias, values, eps, problem.relu)),
    ]
