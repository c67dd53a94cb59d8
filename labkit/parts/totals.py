"""Sums over a warp or a block that all of its threads get, always in the same order: two runs give the same bits."""

import numpy as np

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def warp_total(value):
    """The sum over the lanes of a warp, in all of them: each step adds what a lane further away has.

    Two lanes add the same two numbers, so that all have the same bits.
    """
    away = WARP // 2
    while away > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, away)
        away //= 2
    return value


@cuda.jit(device=True)
def block_total(value, of_warps):
    """The sum over a block, in all of its threads, which all must call.

    `of_warps` is a shared array of an element for each warp, that nobody reads any more from another call.
    """
    value = warp_total(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[t // WARP] = value
    cuda.syncthreads()
    of_warp = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        of_warp = of_warps[t % WARP]
    return warp_total(of_warp)


@cuda.jit(device=True)
def block_totals(first, second, of_warps):
    """As `block_total`, of two numbers behind one barrier; `of_warps` has two rows."""
    first, second = warp_total(first), warp_total(second)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[0, t // WARP], of_warps[1, t // WARP] = first, second
    cuda.syncthreads()
    of_warp_first = of_warp_second = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        of_warp_first, of_warp_second = of_warps[0, t % WARP], of_warps[1, t % WARP]
    return warp_total(of_warp_first), warp_total(of_warp_second)


@cuda.jit(device=True)
def all_block_totals(values, of_warps, count):
    """The first `count` values of each thread become their sums over a block, behind one barrier.

    `of_warps` has a row for each of them, that nobody reads any more from another call.
    """
    t = cuda.threadIdx.x
    for i in range(count):
        values[i] = warp_total(values[i])
        if t % WARP == 0:
            of_warps[i, t // WARP] = values[i]
    cuda.syncthreads()
    for i in range(count):
        of_warp = np.float32(0)
        if t % WARP < cuda.blockDim.x // WARP:
            of_warp = of_warps[i, t % WARP]
        values[i] = warp_total(of_warp)
