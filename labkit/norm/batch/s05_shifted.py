"""One pass sums the distances of values from one of them, and the squared distances.

Shifting all values does not change their variance, and the difference of two close floats is exact. Each thread
subtracts its first value. That is at most sqrt(n - 1) spreads from the mean of its n values (Samuelson, How Deviant Can
You Be?, 1968). The squares therefore do not swamp the variance. Threads are merged as in `s04_welford`; a mean is two
numbers, the first value and the mean distance from it, which are not added.

Costs in passes over memory, each of which reads or writes all values once:

    1       shifted: read
    2       normalised: read, written
    2       rectified: read, written
    5       passes in all

Limited by memory. It is less exact if the first value of a thread is far from hundreds of others: with one value of 1e4
and all others near 0 a channel is off by a few 1e-4. `s06_fused` applies ReLU in registers.

Parts: `block_moments` of `labkit.parts.moments`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.norm.batch import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.moments import MOMENT_FIELDS, block_moments

WARP, WARPS = 32, 32  # threads per warp, and warps per block of the kernel that sums
THREADS = 256  # per block of the other kernels


@cuda.jit(launch_bounds=WARP * WARPS)
def shifted(x, mean, variance, running_mean, running_variance, images, momentum):
    warp_moments = cuda.shared.array((MOMENT_FIELDS, WARPS), np.float32)
    t, c, channels = cuda.threadIdx.x, cuda.blockIdx.x, cuda.gridDim.x
    count = first = shifted_sum = shifted_squares = np.float32(0)
    for n in range(t // WARP, images, WARPS):
        for i in range(t % WARP, x.shape[1], WARP):
            value = x[n * channels + c, i]
            first = value if count == np.float32(0) else first
            count += np.float32(1)
            shifted_sum += value - first
            shifted_squares += (value - first) * (value - first)
    shifted_mean = shifted_sum / max(count, np.float32(1))
    num_values, average, mean_low, m2 = block_moments(
        count, first, shifted_mean, shifted_squares - shifted_sum * shifted_mean, warp_moments
    )
    if t == 0:
        average += mean_low
        mean[c] = average
        variance[c] = m2 / num_values  # m2: sum of squared deviations from the mean
        keep = np.float32(1) - momentum
        running_mean[c] = keep * running_mean[c] + momentum * average
        running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))


@cuda.jit
def normalised(x, mean, variance, weight, bias, y, eps):
    plane = cuda.blockIdx.x
    c = plane % mean.shape[0]
    scale = weight[c] / sqrt(variance[c] + eps)
    for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
        y[plane, i] = (x[plane, i] - mean[c]) * scale + bias[c]


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
    statistics = mean, variance, running_mean, running_variance
    lines = [
        Launch(shifted, *channels, (x, *statistics, problem.N, np.float32(problem.batch_weight))),
        Launch(normalised, *planes, (x, mean, variance, weight, bias, y, np.float32(problem.eps))),
    ]
    return lines + [Launch(rectified, *planes, (y,))] * problem.relu
