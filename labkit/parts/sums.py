"""Sums over the threads of a warp, of a block and of a grid, always in the same order: two runs give the same bits.

`warp_sum` and `block_sum` leave the sum in the first thread; those with `all` in their names give it to all threads.
"""

import numpy as np

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def warp_sum(value):
    """Return the sum over the lanes of a warp, in lane 0. Each step halves the distance to the other lane."""
    away = WARP // 2
    while away > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, away)
        away //= 2
    return value


@cuda.jit(device=True)
def warp_all_sum(value):
    """Return the sum over the lanes of a warp, in all of them. Each step adds the value of a lane further away.

    Two lanes add the same two numbers, so that all have the same bits.
    """
    away = WARP // 2
    while away > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, away)
        away //= 2
    return value


@cuda.jit(device=True)
def block_sum(value, of_warps):
    """Return the sum over a row of the block, in its thread 0. All threads must call.

    `of_warps` is a shared array of an element for each warp of the row.
    """
    own = warp_sum(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[t // WARP] = own
    cuda.syncthreads()
    if t == 0:
        for warp in range(1, cuda.blockDim.x // WARP):
            own += of_warps[warp]
    return own


@cuda.jit(device=True)
def block_all_sum(value, of_warps):
    """Return the sum over a block, in all of its threads, which all must call.

    `of_warps` is a shared array of an element for each warp, which no thread reads any more from another call.
    """
    value = warp_all_sum(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[t // WARP] = value
    cuda.syncthreads()
    of_warp = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        of_warp = of_warps[t % WARP]
    return warp_all_sum(of_warp)


@cuda.jit(device=True)
def block_all_sum2(first, second, of_warps):
    """Return the sums of two values over a block, in all of its threads, by one barrier; `of_warps` has two rows."""
    first, second = warp_all_sum(first), warp_all_sum(second)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[0, t // WARP], of_warps[1, t // WARP] = first, second
    cuda.syncthreads()
    of_warp_first = of_warp_second = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        of_warp_first, of_warp_second = of_warps[0, t % WARP], of_warps[1, t % WARP]
    return warp_all_sum(of_warp_first), warp_all_sum(of_warp_second)


@cuda.jit(device=True)
def block_all_sums(values, of_warps, count):
    """Replace the first `count` values of each thread by their sums over a block, by one barrier.

    `of_warps` has a row for each of them, which no thread reads any more from another call.
    """
    t = cuda.threadIdx.x
    for i in range(count):
        values[i] = warp_all_sum(values[i])
        if t % WARP == 0:
            of_warps[i, t // WARP] = values[i]
    cuda.syncthreads()
    for i in range(count):
        of_warp = np.float32(0)
        if t % WARP < cuda.blockDim.x // WARP:
            of_warp = of_warps[i, t % WARP]
        values[i] = warp_all_sum(of_warp)


@cuda.jit(device=True)
def is_last(arrived, counter, blocks):
    """Whether all other of so many blocks were here before this one, which may then read what they wrote.

    The counter `arrived[counter]` (uint32) must be 0 before the launch, and is so again after it.
    All threads must call. After threadFenceReduction of NVIDIA's CUDA samples.
    """
    last = cuda.shared.array(1, np.int32)
    cuda.threadfence()  # what this thread wrote can be seen before the block is counted
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        before = cuda.atomic.inc(arrived, counter, np.uint32(blocks - 1))
        last[0] = before == blocks - 1
        cuda.threadfence()
    cuda.syncthreads()
    return last[0] != 0
