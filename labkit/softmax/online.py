"""The maximum of some values, and the sum of their exponentials relative to it: parts merged into those of all.

    maximum = max of x          total = sum of exp(x - maximum)

A part that has found another maximum is rescaled: exp(x - m) * exp(m - M) = exp(x - M). No exponential is above 1.
(Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3 and section 3.1.) Always in the
same order: two runs give the same bits.

The maximum of nothing is the least finite float32. Were it minus infinity, a row that begins with that would be
rescaled by exp(-inf + inf), a NaN. So a row of minus infinities has a total of 0, and 0 / 0 is the NaN it becomes.
"""

import math

import numpy as np

from labkit import cuda
from labkit.parts.sums import warp_all_sum

WARP = 32
LEAST = np.finfo(np.float32).min
LOG2_E = np.float32(1.4426950408889634)


@cuda.jit(device=True)
def exp(x):
    """exp(x): hardware has the power of 2 as an instruction."""
    return math.exp2(x * LOG2_E)


@cuda.jit(device=True)
def add_value(maximum, total, value):
    """Maximum and total with one more value."""
    larger = max(maximum, value)
    return larger, total * exp(maximum - larger) + exp(value - larger)


@cuda.jit(device=True)
def warp_max(value):
    """The maximum over the lanes of a warp, in all of them."""
    away = WARP // 2
    while away > 0:
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, away))
        away //= 2
    return value


@cuda.jit(device=True)
def merge_warp(maximum, total):
    """Maximum and total of all lanes of a warp, in all of them: each lane rescales its own once."""
    largest = warp_max(maximum)
    return largest, warp_all_sum(total * exp(maximum - largest))


@cuda.jit(device=True)
def merge_block(maximum, total, of_warps):
    """Those of all warps of a block, in all threads, of those of each warp, which its lanes have. All must call.

    `of_warps` is a shared array of two rows, with an element for each warp, that nobody reads any more from another
    call.
    """
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[0, t // WARP], of_warps[1, t // WARP] = maximum, total
    cuda.syncthreads()
    maximum, total = LEAST, np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        maximum, total = of_warps[0, t % WARP], of_warps[1, t % WARP]
    return merge_warp(maximum, total)
