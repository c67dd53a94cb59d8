"""Three kernels: the residual's gradient, which is dy where y passed ReLU; both sums; and dx.

The y that the forward pass wrote shows whether a value passed ReLU.

Costs in passes over memory, each of which reads or writes all values once:

    3       masked: dy and y read, dresidual written
    2       both_sums: dresidual and x read
    3       gradients: dresidual and x read, dx written
    8       passes in all

Limited by memory. `s02_split` sums the masked values in the same pass, and has more bytes in flight.

Parts: `block_sum` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.images import as_planes
from labkit.norm.residual_backward import SUPPORTED
from labkit.parts.sums import block_sum

FORMATS = (FP32,)
WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit
def masked(dy, y, dresidual, relu):
    plane = cuda.blockIdx.x
    for i in range(cuda.threadIdx.x, y.shape[1], THREADS):
        g, y_value = dy[plane, i], y[plane, i]
        dresidual[plane, i] = np.float32(0) if relu and y_value <= np.float32(0) else g  # a NaN is not below zero


@cuda.jit(launch_bounds=WARP * WARPS)
def both_sums(dresidual, x, mean, variance, dweight, dbias, images, eps):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    g_sum = gx_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g = dresidual[plane, i]
            g_sum += g
            gx_sum += g * (x[plane, i] - mean[c])
    g_sum, gx_sum = block_sum(g_sum, warp_partials[0]), block_sum(gx_sum, warp_partials[1])
    if t == 0:
        dbias[c] = g_sum
        dweight[c] = gx_sum / sqrt(variance[c] + eps)


@cuda.jit
def gradients(dresidual, x, weight, mean, variance, dx, dweight, dbias, num_values, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, g_mean, slope = weight[c] / root, dbias[c] / num_values, dweight[c] / num_values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        dx[plane, i] = scale * (dresidual[plane, i] - g_mean - (x[plane, i] - mean[c]) * slope)


def launches(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, problem):
    """Return the launches for dx, dresidual, dweight and dbias of images in NCHW."""
    problem.check(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, supported=SUPPORTED)
    dy, x, y, dx, dresidual = as_planes(dy, x, y, dx, dresidual)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    eps, values = np.float32(problem.eps), np.float32(problem.values)
    return [
        Launch(masked, *planes, (dy, y, dresidual, problem.relu)),
        Launch(both_sums, *channels, (dresidual, x, mean, variance, dweight, dbias, problem.N, eps)),
        Launch(gradients, *planes, (dresidual, x, weight, mean, variance, dx, dweight, dbias, values, eps)),
    ]
