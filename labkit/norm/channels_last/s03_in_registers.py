"""A few channels of small images stay in the registers of one block: no block waits for others.

A thread takes four channels of a pixel at a time, and a block all pixels of these four: 1568 in a batch of 32 images of
7 x 7 pixels, two for each of 800 threads. Other blocks take the other channels of the same pixels, and find what memory
gave beside them in L2. As in NCHW the block finds the mean, then the squares about it, and corrects both by what is
left over.

Costs, in passes over memory, each of them all values read or written once:

    2       in_registers: read, written
    2       passes in all

Limited by how long memory takes to answer, once to read and once to write, and by two sums of a block.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import cache
from math import prod, sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshape
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_fours

FORMATS = FP32, BF16
BENCHED = ((32, 512, 7, 7, True, "NHWC"),)
COMPARED = 32, 512, 7, 7, True, "NHWC"
LARGEST = (128, 4, 8, 8, True, "NHWC"), (128, 5, 8, 8, True, "NHWC")
WIDTH = 4  # channels of a thread
OF_CHANNEL = 4  # values of a channel that are there before: asked for at once with the pixels
SUMS = 2 * WIDTH  # of a block
ALL_SUMS = SUMS + WIDTH  # with the first ones
SHARE, MOST_SHARE = 2, 8  # pixels of a thread
WARP, MOST_WARPS = 32, 32
AT_ONCE = True  # all blocks run, or another step is chosen: a second one in their place would wait for memory again


@cuda.jit(launch_bounds=WARP * MOST_WARPS)
def in_registers(x, weight, bias, y, mean, variance, running_mean, running_variance, eps, factor, relu):
    own = cuda.local.array((SHARE, WIDTH), np.float32)
    near = cuda.local.array(WIDTH, np.float32)
    of_warps = cuda.shared.array((ALL_SUMS, MOST_WARPS), np.float32)
    sums = cuda.local.array(SUMS, np.float32)
    before = cuda.local.array((OF_CHANNEL, WIDTH), np.float32)
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c, values = np.uint32(WIDTH * cuda.blockIdx.x), np.float32(x.shape[0])
    for k in range(SHARE):
        if t + k * threads < pixels:
            own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, t + k * threads, c)
    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        before[0, e], before[1, e] = weight[channel], bias[channel]
        before[2, e], before[3, e] = running_mean[channel], running_variance[channel]

    for e in range(WIDTH):
        sums[e] = np.float32(0)
        for k in range(SHARE):
            if t + k * threads < pixels:
                sums[e] += own[k, e]
    block_all_sums(sums, of_warps[SUMS:], WIDTH)
    for e in range(WIDTH):
        near[e] = sums[e] / values

    for e in range(WIDTH):
        sums[e] = sums[WIDTH + e] = np.float32(0)
        for k in range(SHARE):
            if t + k * threads < pixels:
                value = own[k, e] - near[e]
                sums[e] += value
                sums[WIDTH + e] += value * value
    block_all_sums(sums, of_warps, SUMS)

    for e in range(WIDTH):
        total, squares = sums[e], sums[WIDTH + e]
        centre = near[e] + total / values
        squares -= total * (total / values)
        scale, shift = before[0, e] / sqrt(squares / values + eps), before[1, e]
        if t == 0 and c + e < channels:
            mean[c + e] = centre
            variance[c + e] = squares / values
            keep = np.float32(1) - factor
            running_mean[c + e] = keep * before[2, e] + factor * centre
            running_variance[c + e] = keep * before[3, e] + factor * squares / (values - np.float32(1))
        for k in range(SHARE):
            if t + k * threads < pixels:
                value = (own[k, e] - centre) * scale + shift
                own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero

    for k in range(SHARE):
        if t + k * threads < pixels:
            store_row_four(y, t + k * threads, c, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def geometry(problem) -> tuple[int, int]:
    """How many pixels a thread takes, and threads of a block.

    Raises
    ------
    TooLarge
        There are more pixels than a block keeps.
    """
    share = -(-problem.values // (WARP * MOST_WARPS))
    if share > MOST_SHARE:
        raise TooLarge(f"there are {problem.values} pixels, and a block keeps {WARP * MOST_WARPS * MOST_SHARE}")
    return share, WARP * -(-problem.values // (share * WARP))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, y = reshape(x, prod(x.shape[:3]), x.shape[3]), reshape(y, prod(y.shape[:3]), y.shape[3])
    share, threads = geometry(problem)
    numbers = np.float32(problem.eps), np.float32(problem.factor), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    return [Launch(specialise_fours(_sized(in_registers, share), x, y), -(-problem.C // WIDTH), threads, arguments)]


@cache
def _sized(kernel, share: int):
    """The kernel's copy for so many pixels a thread."""
    return specialise(kernel, SHARE=share)
