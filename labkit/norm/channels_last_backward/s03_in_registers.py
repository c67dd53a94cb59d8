"""A few channels of small images stay in the registers of one block: no block waits for others.

A thread takes four channels of a pixel at a time, and a block all pixels of these four: 1568 in a batch of 32 images of
7 x 7 pixels, two for each of 800 threads. Other blocks take the other channels of the same pixels, and find what memory
gave beside them in L2.

Costs, in passes over memory, each of them all values read or written once:

    3       in_registers: dy and x read, dx written
    3       passes in all

Limited by how long memory takes to answer, once to read and once to write, and by the sums of a block. Larger images do
not fit. `s04_one_read` keeps them in the shared memory of all blocks.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import cache
from math import prod, sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshape
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last_backward import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_fours

BENCHED = ((32, 512, 7, 7, True, "NHWC"),)
COMPARED = 32, 512, 7, 7, True, "NHWC"
LARGEST = (48, 4, 8, 8, True, "NHWC"), (48, 5, 8, 8, True, "NHWC")
WIDTH = 4  # channels of a thread
SUMS = 2 * WIDTH  # of a block
SHARE, MOST_SHARE = 2, 3  # pixels of a thread
WARP, MOST_WARPS = 32, 32
AT_ONCE = True  # all blocks run, or another step is chosen: a second one in their place would wait for memory again


@cuda.jit(launch_bounds=WARP * MOST_WARPS)
def in_registers(dy, x, weight, bias, mean, variance, dx, dweight, dbias, eps, relu):
    gradient = cuda.local.array((SHARE, WIDTH), np.float32)
    own = cuda.local.array((SHARE, WIDTH), np.float32)
    of_warps = cuda.shared.array((SUMS, MOST_WARPS), np.float32)
    sums = cuda.local.array(SUMS, np.float32)
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c, values = np.uint32(WIDTH * cuda.blockIdx.x), np.float32(x.shape[0])
    for k in range(SHARE):
        if t + k * threads < pixels:
            gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, t + k * threads, c)
            own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, t + k * threads, c)

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        centre, shift, scale = mean[channel], bias[channel], weight[channel] / sqrt(variance[channel] + eps)
        sums[e] = sums[WIDTH + e] = np.float32(0)
        for k in range(SHARE):
            if t + k * threads < pixels:
                own[k, e] -= centre
                if relu and own[k, e] * scale + shift <= np.float32(0):  # a NaN is not below zero
                    gradient[k, e] = np.float32(0)
                sums[e] += gradient[k, e]
                sums[WIDTH + e] += gradient[k, e] * own[k, e]
    block_all_sums(sums, of_warps, SUMS)

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        root = sqrt(variance[channel] + eps)
        if t == 0 and c + e < channels:
            dbias[channel] = sums[e]
            dweight[channel] = sums[WIDTH + e] / root
        scale, level, slope = weight[channel] / root, sums[e] / values, sums[WIDTH + e] / values / (root * root)
        for k in range(SHARE):
            if t + k * threads < pixels:
                own[k, e] = scale * (gradient[k, e] - level - own[k, e] * slope)

    for k in range(SHARE):
        if t + k * threads < pixels:
            store_row_four(dx, t + k * threads, c, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


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


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """dx, dweight and dbias, of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshape(X, prod(X.shape[:3]), X.shape[3]) for X in (dy, x, dx))
    share, threads = geometry(problem)
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, np.float32(problem.eps), problem.relu
    kernel = specialise_fours(_sized(in_registers, share), dy, x, dx)
    return [Launch(kernel, -(-problem.C // WIDTH), threads, arguments)]


@cache
def _sized(kernel, share: int):
    """The kernel's copy for so many pixels a thread."""
    return specialise(kernel, SHARE=share)
