"""Online softmax: the maximum of some values and the sum of their exponentials, and the merge of two such pairs.

    row_max = max of x          row_sum = sum of exp(x - row_max)

A pair with another maximum is rescaled: exp(x - m) * exp(m - M) = exp(x - M). No exponential is above 1. (Milakov and
Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3 and section 3.1.) The order of merges is fixed:
two runs give the same bits.

The maximum of no values is the least finite float32. Minus infinity would rescale a row that begins with it by
exp(-inf + inf), a NaN. A row of only minus infinities has a row_sum of 0, and 0 / 0 is the NaN that it becomes.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.parts.sums import warp_all_sum

WARP = 32
LOWEST_FLOAT32 = np.finfo(np.float32).min
LOG2_E = np.float32(1.4426950408889634)


@cuda.jit(device=True)
def exp(x):
    """Return exp(x) by exp2, which the hardware has as an instruction; results below 2**-126 become 0."""
    return ptx.exp2(x * LOG2_E)


@cuda.jit(device=True)
def update_max_and_sum(row_max, row_sum, value):
    """Return row_max and row_sum with one more value."""
    new_max = max(row_max, value)
    return new_max, row_sum * exp(row_max - new_max) + exp(value - new_max)


@cuda.jit(device=True)
def warp_max(value):
    """Return the maximum over the lanes of a warp, in all of them."""
    offset = WARP // 2
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset //= 2
    return value


@cuda.jit(device=True)
def group_max(value, lanes):
    """Return the maximum over each group of `lanes` neighbours in a warp, a power of two, in all of its lanes."""
    offset = lanes // 2
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset //= 2
    return value


@cuda.jit(device=True)
def warp_max_and_sum(row_max, row_sum):
    """Return row_max and row_sum over the lanes of a warp, in all of them; each lane rescales its own once."""
    new_max = warp_max(row_max)
    return new_max, warp_all_sum(row_sum * exp(row_max - new_max))


@cuda.jit(device=True)
def block_max_and_sum(row_max, row_sum, warp_partials):
    """Return row_max and row_sum over the warps of a block, in all threads; all threads must call.

    The lanes of a warp pass the warp's own. `warp_partials` is a shared array of two rows with an element per warp; no
    thread may still read it from an earlier call.
    """
    t = cuda.threadIdx.x
    if t % WARP == 0:
        warp_partials[0, t // WARP], warp_partials[1, t // WARP] = row_max, row_sum
    cuda.syncthreads()
    row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        row_max, row_sum = warp_partials[0, t % WARP], warp_partials[1, t % WARP]
    return warp_max_and_sum(row_max, row_sum)
