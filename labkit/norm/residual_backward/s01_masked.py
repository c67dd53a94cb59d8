"""The gradient of the residual, which is that of y where ReLU let y through; both sums; and the gradient of x.

Whether ReLU let a value through is seen from y, which the forward pass has written.

Costs, in passes over memory, each of them all values read or written once:

    3       masked: dy and y read, dresidual written
    2       both_sums: dresidual and x read
    3       gradients: dresidual and x read, dx written
    8       passes in all

Limited by memory. `s02_split` sums what it masks, and asks for more at a time.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.problem import planes_of
from labkit.norm.residual_backward import TAKES
from labkit.parts.sums import block_sum

FORMATS = (FP32,)
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit
def masked(dy, y, dresidual, relu):
    plane = cuda.blockIdx.x
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        g, above = dy[plane, i], y[plane, i]
        dresidual[plane, i] = np.float32(0) if relu and above <= np.float32(0) else g  # a NaN is not below zero


@cuda.jit(launch_bounds=WARP * WARPS)
def both_sums(dresidual, x, mean, variance, dweight, dbias, images, eps):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    total = products = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g = dresidual[plane, i]
            total += g
            products += g * (x[plane, i] - mean[c])
    total, products = block_sum(total, of_warps[0]), block_sum(products, of_warps[1])
    if t == 0:
        dbias[c] = total
        dweight[c] = products / sqrt(variance[c] + eps)


@cuda.jit
def gradients(dresidual, x, weight, mean, variance, dx, dweight, dbias, values, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, share, slope = weight[c] / root, dbias[c] / values, dweight[c] / values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        dx[plane, i] = scale * (dresidual[plane, i] - share - (x[plane, i] - mean[c]) * slope)


def launches(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, problem):
    """dx, dresidual, dweight and dbias, of images in NCHW."""
    problem.check(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, takes=TAKES)
    dy, x, y, dx, dresidual = (reshape(X, *planes_of(X.shape)) for X in (dy, x, y, dx, dresidual))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    eps, values = np.float32(problem.eps), np.float32(problem.values)
    return [
        Launch(masked, *planes, (dy, y, dresidual, problem.relu)),
        Launch(both_sums, *channels, (dresidual, x, mean, variance, dweight, dbias, problem.N, eps)),
        Launch(gradients, *planes, (dresidual, x, weight, mean, variance, dx, dweight, dbias, values, eps)),
    ]
