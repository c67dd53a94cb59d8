"""The value that was scaled is rectified in its register: ReLU costs nothing.

Costs, in passes over memory, each of them all values read or written once:

    1       shifted: read
    2       fused: read, written
    3       passes in all

No fewer are needed if y is written as x is read the second time, unless a channel stays on the chip in between.
Limited by memory, of which `s07_split` asks for more at a time.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.ladder import Launch
from labkit.norm.batch import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.moments import ROWS, block_moments

WARP, WARPS = 32, 32  # threads of a warp, and warps of a block that sums
THREADS = 256  # of a block that computes a line


@cuda.jit(launch_bounds=WARP * WARPS)
def shifted(x, mean, variance, running_mean, running_variance, images, factor):
    of_warps = cuda.shared.array((ROWS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = first = total = squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            first = value if count == np.float32(0) else first
            count += np.float32(1)
            total += value - first
            squares += (value - first) * (value - first)
    share = total / max(count, np.float32(1))
    values, average, rest, squares = block_moments(count, first, share, squares - total * share, of_warps)
    if t == 0:
        average += rest
        mean[c] = average
        variance[c] = squares / values
        keep = np.float32(1) - factor
        running_mean[c] = keep * running_mean[c] + factor * average
        running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))


@cuda.jit
def fused(x, mean, variance, weight, bias, y, eps, relu):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    scale = weight[c] / sqrt(variance[c] + eps)
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        value = (x[plane, i] - mean[c]) * scale + bias[c]
        y[plane, i] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    problem.check(x, weight, bias, y, mean, variance, running_mean, running_variance, takes=TAKES)
    x, y = reshaped(x, *planes_of(x.shape)), reshaped(y, *planes_of(y.shape))
    channels, planes = (problem.C, WARP * WARPS), (problem.N * problem.C, THREADS)
    kept = mean, variance, running_mean, running_variance
    return [
        Launch(shifted, *channels, (x, *kept, problem.N, np.float32(problem.factor))),
        Launch(fused, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps), problem.relu)),
    ]
