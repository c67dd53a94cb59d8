"""Sums over the threads of a warp or of a block of whole warps, in a fixed order: two runs give the same bits.

`warp_sum` and `block_sum` leave the sum in the first thread; functions with `all` in their names, in all threads.
"""

import numpy as np

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def warp_sum(value):
    """Return the sum over the lanes of a warp, in lane 0. Each step halves the distance to the other lane."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    return value


@cuda.jit(device=True)
def warp_all_sum(value):
    """Return the sum over the lanes of a warp, in all of them; in a step two lanes add the same two numbers."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    return value


@cuda.jit(device=True)
def group_all_sum(value, lanes):
    """Return the sum over each group of `lanes` neighbours in a warp, a power of two, in all of its lanes."""
    offset = lanes // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    return value


@cuda.jit(device=True)
def block_sum(value, warp_sums):
    """Return the sum over a row of the block, in its thread 0. All threads must call.

    `warp_sums` is a shared array with one element per warp of the row.
    """
    total = warp_sum(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        warp_sums[t // WARP] = total
    cuda.syncthreads()
    if t == 0:
        for warp in range(1, cuda.blockDim.x // WARP):
            total += warp_sums[warp]
    return total


@cuda.jit(device=True)
def block_all_sum(value, warp_sums):
    """Return the sum over a block, in all of its threads. All threads must call.

    `warp_sums` is a shared array with one element per warp; no thread may still be reading it from another call.
    """
    value = warp_all_sum(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        warp_sums[t // WARP] = value
    cuda.syncthreads()
    lane_sum = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        lane_sum = warp_sums[t % WARP]
    return warp_all_sum(lane_sum)


@cuda.jit(device=True)
def block_all_sum2(first, second, warp_sums):
    """Return the sums of two values over a block, in all of its threads, by one barrier; `warp_sums` has two rows."""
    first, second = warp_all_sum(first), warp_all_sum(second)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        warp_sums[0, t // WARP], warp_sums[1, t // WARP] = first, second
    cuda.syncthreads()
    first_of_lane = second_of_lane = np.float32(0)
    if t % WARP < cuda.blockDim.x // WARP:
        first_of_lane, second_of_lane = warp_sums[0, t % WARP], warp_sums[1, t % WARP]
    return warp_all_sum(first_of_lane), warp_all_sum(second_of_lane)


@cuda.jit(device=True)
def block_all_sums(values, warp_sums, count):
    """Replace the first `count` values of each thread by their sums over a block, by one barrier.

    `warp_sums` has a row for each of them; no thread may still be reading it from another call.
    """
    t = cuda.threadIdx.x
    for i in range(count):
        values[i] = warp_all_sum(values[i])
        if t % WARP == 0:
            warp_sums[i, t // WARP] = values[i]
    cuda.syncthreads()
    for i in range(count):
        lane_sum = np.float32(0)
        if t % WARP < cuda.blockDim.x // WARP:
            lane_sum = warp_sums[i, t % WARP]
        values[i] = warp_all_sum(lane_sum)


@cuda.jit(device=True)
def is_last_block(arrived, counter, num_blocks):
    """Return whether this is the last of `num_blocks` blocks to call; it may then read what the others wrote.

    The counter `arrived[counter]` (uint32) is 0 before the launch and 0 after it. All threads must call.
    After threadFenceReduction of NVIDIA's CUDA samples.
    """
    last = cuda.shared.array(1, np.int32)
    cuda.threadfence()  # this thread's writes are visible before the block is counted
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        before = cuda.atomic.inc(arrived, counter, np.uint32(num_blocks - 1))
        last[0] = before == num_blocks - 1
        cuda.threadfence()
    cuda.syncthreads()
    return last[0] != 0
