"""Sums over the threads of a warp, of a block and of a grid, always in the same order: two runs give the same bits."""

import numpy as np

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def warp_sum(value):
    """The sum over the lanes of a warp, in lane 0: each step halves how far away the other lane is."""
    away = WARP // 2
    while away > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, away)
        away //= 2
    return value


@cuda.jit(device=True)
def block_sum(value, of_warps):
    """The sum over a row of the block, in its thread 0. All threads must call.

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
