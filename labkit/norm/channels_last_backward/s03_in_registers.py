"""One block keeps a few channels of small images in registers: blocks do not wait for each other.

A thread loads four channels of a pixel at a time, and a block has all pixels of these four: 1568 in a batch of 32
images of 7 x 7 pixels, two for each of 800 threads. Other blocks process the other channels of the same pixels, and
find the rest of each sector in L2.

Costs in passes over memory, each of which reads or writes all values once:

    3       in_registers: dy and x read, dx written
    3       passes in all

Limited by memory latency, once for the load and once for the store, and by the block reduction. Larger images do not
fit. `s04_one_read` keeps them in the shared memory of all blocks.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last_backward import SUPPORTED
from labkit.norm.images import as_pixels
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_type_and_alignment

BENCHED = ((32, 512, 7, 7, True, "NHWC"),)  # timed sizes
COMPARED = 32, 512, 7, 7, True, "NHWC"  # the timed size by which steps are compared
LARGEST = (48, 4, 8, 8, True, "NHWC"), (48, 5, 8, 8, True, "NHWC")  # also tested: the most work per thread
WIDTH = 4  # channels per thread
SUMS = 2 * WIDTH  # per block
PER_THREAD, MAX_PER_THREAD = 2, 3  # pixels per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
ONE_WAVE_ONLY = True  # chosen only if all blocks are resident: a second wave would wait for memory again
specialise_once = cache(specialise)  # copies: one per number of pixels


@cuda.jit(launch_bounds=WARP * MAX_WARPS)
def in_registers(dy, x, weight, bias, mean, variance, dx, dweight, dbias, eps, relu):
    dy_reg = cuda.local.array((PER_THREAD, WIDTH), np.float32)
    x_reg = cuda.local.array((PER_THREAD, WIDTH), np.float32)
    warp_partials = cuda.shared.array((SUMS, MAX_WARPS), np.float32)
    sums = cuda.local.array(SUMS, np.float32)
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c, values = np.uint32(WIDTH * cuda.blockIdx.x), np.float32(x.shape[0])
    for k in range(PER_THREAD):
        if t + k * threads < pixels:
            dy_reg[k, 0], dy_reg[k, 1], dy_reg[k, 2], dy_reg[k, 3] = load_row_four(dy, t + k * threads, c)
            x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, t + k * threads, c)

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        centre, shift, scale = mean[channel], bias[channel], weight[channel] / sqrt(variance[channel] + eps)
        sums[e] = sums[WIDTH + e] = np.float32(0)
        for k in range(PER_THREAD):
            if t + k * threads < pixels:
                x_reg[k, e] -= centre
                if relu and x_reg[k, e] * scale + shift <= np.float32(0):  # a NaN is not below zero
                    dy_reg[k, e] = np.float32(0)
                sums[e] += dy_reg[k, e]
                sums[WIDTH + e] += dy_reg[k, e] * x_reg[k, e]
    block_all_sums(sums, warp_partials, SUMS)

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        root = sqrt(variance[channel] + eps)
        if t == 0 and c + e < channels:
            dbias[channel] = sums[e]
            dweight[channel] = sums[WIDTH + e] / root
        scale, g_mean, slope = weight[channel] / root, sums[e] / values, sums[WIDTH + e] / values / (root * root)
        for k in range(PER_THREAD):
            if t + k * threads < pixels:
                x_reg[k, e] = scale * (dy_reg[k, e] - g_mean - x_reg[k, e] * slope)

    for k in range(PER_THREAD):
        if t + k * threads < pixels:
            store_row_four(dx, t + k * threads, c, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def geometry(problem) -> tuple[int, int]:
    """Return pixels per thread and threads per block; raise TooLarge if the pixels do not fit."""
    per_thread = -(-problem.values // (WARP * MAX_WARPS))
    if per_thread > MAX_PER_THREAD:
        raise TooLarge(f"there are {problem.values} pixels, and a block keeps {WARP * MAX_WARPS * MAX_PER_THREAD}")
    return per_thread, WARP * -(-problem.values // (per_thread * WARP))


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_pixels(dy, x, dx)
    per_thread, threads = geometry(problem)
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, np.float32(problem.eps), problem.relu
    kernel = specialise_type_and_alignment(
        specialise_once(in_registers, PER_THREAD=per_thread), dy, x, dx, dtype=format.dtype
    )
    return [Launch(kernel, -(-problem.C // WIDTH), threads, arguments)]
