"""The sums and dx each recompute ReLU's mask: no intermediate result is stored.

Three operations per value are done twice. Three passes over memory disappear, those of the kernel that masked dy: it
read dy and x, and stored the result.

Costs in passes over memory, each of which reads or writes all values once:

    2       both_sums: dy and x read
    3       masked_again: dy and x read, dx written
    5       passes in all

Fewer passes are impossible, unless a channel stays on the chip between them. Limited by memory; `s04_split` has more
bytes in flight.

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


@cuda.jit(launch_bounds=WARP * WARPS)
def both_sums(dy, x, weight, bias, mean, variance, dweight, dbias, images, eps, relu):
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    root = sqrt(variance[c] + eps)
    scale = weight[c] / root
    g_sum = gx_sum = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        plane = n * channels + c
        for i in range(t % WARP, x.shape[1], WARP):
            g, centred = dy[plane, i], x[plane, i] - mean[c]
            g = np.float32(0) if relu and centred * scale + bias[c] <= np.float32(0) else g  # a NaN is not below zero
            g_sum += g
            gx_sum += g * centred
    g_sum, gx_sum = block_sum(g_sum, warp_partials[0]), block_sum(gx_sum, warp_partials[1])
    if t == 0:
        dbias[c] = g_sum
        dweight[c] = gx_sum / root


@cuda.jit
def masked_again(dy, x, weight, bias, mean, variance, dx, dweight, dbias, num_values, eps, relu):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    root = sqrt(variance[c] + eps)
    scale, g_mean, slope = weight[c] / root, dbias[c] / num_values, dweight[c] / num_values / root
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        g, centred = dy[plane, i], x[plane, i] - mean[c]
        g = np.float32(0) if relu and centred * scale + bias[c] <= np.float32(0) else g  # a NaN is not below zero
        dx[plane, i] = scale * (g - g_mean - centred * slope)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem):
    """Return the launches for dx, dweight and dbias of images in NCHW."""
    problem.check(dy, x, weight, bias, mean, variance, dx, dweight, dbias, supported=SUPPORTED)
    dy, x, dx = as_planes(dy, x, dx)
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    inputs, eps, values = (dy, x, weight, bias, mean, variance), np.float32(problem.eps), np.float32(problem.values)
    return [
        Launch(both_sums, *channels, (*inputs, dweight, dbias, problem.N, eps, problem.relu)),
        Launch(masked_again, *planes, (*inputs, dx, dweight, dbias, values, eps, problem.relu)),
    ]
