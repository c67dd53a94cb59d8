"""One block keeps a few channels of small images in registers: blocks do not wait for each other.

A thread loads four channels of a pixel at a time, and a block has all pixels of these four: 1568 in a batch of 32
images of 7 x 7 pixels, two for each of 800 threads. Other blocks process the other channels of the same pixels, and
find the rest of each sector in L2. As in NCHW the block computes a rough mean, then the squares around it, and corrects
both by the sum of the deviations.

Costs in passes over memory, each of which reads or writes all values once:

    2       in_registers: read, written
    2       passes in all

Limited by memory latency, once for the load and once for the store, and by two block reductions.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last import SUPPORTED
from labkit.norm.images import as_pixels
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_type_and_alignment

FORMATS = FP32, BF16, FP16
BENCHED = ((32, 512, 7, 7, True, "NHWC"),)  # timed sizes
COMPARED = 32, 512, 7, 7, True, "NHWC"  # the timed size by which steps are compared
LARGEST = (128, 4, 8, 8, True, "NHWC"), (128, 5, 8, 8, True, "NHWC")  # also tested: the most work per thread
WIDTH = 4  # channels per thread
PARAMS = 4  # parameters per channel, loaded together with the pixels
SUMS = 2 * WIDTH  # per block
ALL_SUMS = SUMS + WIDTH  # with the sums of the rough mean
PER_THREAD, MAX_PER_THREAD = 2, 8  # pixels per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
ONE_WAVE_ONLY = True  # chosen only if all blocks are resident: a second wave would wait for memory again
specialise_once = cache(specialise)  # copies: one per number of pixels


@cuda.jit(launch_bounds=WARP * MAX_WARPS)
def in_registers(x, weight, bias, y, mean, variance, running_mean, running_variance, eps, momentum, relu):
    x_reg = cuda.local.array((PER_THREAD, WIDTH), np.float32)
    rough_mean = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array((ALL_SUMS, MAX_WARPS), np.float32)
    sums = cuda.local.array(SUMS, np.float32)
    params = cuda.local.array((PARAMS, WIDTH), np.float32)
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c, num_values = np.uint32(WIDTH * cuda.blockIdx.x), np.float32(x.shape[0])
    for k in range(PER_THREAD):
        if t + k * threads < pixels:
            x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, t + k * threads, c)
    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        params[0, e], params[1, e] = weight[channel], bias[channel]
        params[2, e], params[3, e] = running_mean[channel], running_variance[channel]

    for e in range(WIDTH):
        sums[e] = np.float32(0)
        for k in range(PER_THREAD):
            if t + k * threads < pixels:
                sums[e] += x_reg[k, e]
    block_all_sums(sums, warp_partials[SUMS:], WIDTH)
    for e in range(WIDTH):
        rough_mean[e] = sums[e] / num_values

    for e in range(WIDTH):
        sums[e] = sums[WIDTH + e] = np.float32(0)
        for k in range(PER_THREAD):
            if t + k * threads < pixels:
                value = x_reg[k, e] - rough_mean[e]
                sums[e] += value
                sums[WIDTH + e] += value * value
    block_all_sums(sums, warp_partials, SUMS)

    for e in range(WIDTH):
        deviations, squares = sums[e], sums[WIDTH + e]
        centre = rough_mean[e] + deviations / num_values
        squares -= deviations * (deviations / num_values)
        scale, shift = params[0, e] / sqrt(squares / num_values + eps), params[1, e]
        if t == 0 and c + e < channels:
            mean[c + e] = centre
            variance[c + e] = squares / num_values
            keep = np.float32(1) - momentum
            running_mean[c + e] = keep * params[2, e] + momentum * centre
            running_variance[c + e] = keep * params[3, e] + momentum * squares / (num_values - np.float32(1))
        for k in range(PER_THREAD):
            if t + k * threads < pixels:
                value = (x_reg[k, e] - centre) * scale + shift
                x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero

    for k in range(PER_THREAD):
        if t + k * threads < pixels:
            store_row_four(y, t + k * threads, c, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def geometry(problem) -> tuple[int, int]:
    """Return pixels per thread and threads per block; raise TooLarge if the pixels do not fit."""
    per_thread = -(-problem.values // (WARP * MAX_WARPS))
    if per_thread > MAX_PER_THREAD:
        raise TooLarge(f"there are {problem.values} pixels, and a block keeps {WARP * MAX_WARPS * MAX_PER_THREAD}")
    return per_thread, WARP * -(-problem.values // (per_thread * WARP))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """Return the launches for y and all statistics of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_pixels(x, y)
    per_thread, threads = geometry(problem)
    numbers = np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    kernel = specialise_type_and_alignment(
        specialise_once(in_registers, PER_THREAD=per_thread), x, y, dtype=format.dtype
    )
    return [Launch(kernel, -(-problem.C // WIDTH), threads, arguments)]
