"""Some channels of dy and of x stay on the chip between their two uses, all pixels of them, and blocks meet in between.

In NHWC a channel's values lie a whole pixel apart, and memory gives 32 bytes at least. So a team of blocks takes as
many channels as 128 bytes hold, or 64 or 32, of all pixels, as far as the chip has room for both arrays: 210 KB in each
SM, and a part of L2 (H100). Each thread copies vectors of four neighbouring channels, always the same four of its row,
and sums what it has copied itself. What has no room in shared memory is read when the copies have landed, and again,
from L2, first of all when dx is written. In between the blocks of a team leave their sums in memory, meet, and each
adds up those of all, in the same order. A thread that has written dx begins at once to copy the next channels of the
same pixels into the same places.

Costs, in passes over memory, each of them all values read or written once:

    3       one_read: dy and x read, dx written; where there is no room, read again, from L2
    3       passes in all

Limited by the time in which blocks sum and meet, and memory rests: a copy of as many bytes takes three fifths of the
time (H100, 64 x 256 x 56 x 56 in float32).

Parts: `sync_blocks` of `labkit.parts.meeting`; `warp_sum` of `labkit.parts.sums`; `copy_async`, `load`, `load_shared`,
`store` of `labkit.parts.vectors`.
"""

from functools import cache
from math import prod, sqrt

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last_backward import TAKES
from labkit.parts.meeting import sync_blocks
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store

THREADS, WARP, WARPS = 512, 32, 16  # of a block, of a warp, and warps of a block
WIDTH = 4  # channels that a thread takes at once
ACROSS = 8  # threads that stand side by side in a row
CHANNELS = WIDTH * ACROSS  # that a team takes at once
ELEMENT = np.float32  # what images hold
MOST_BYTES = 210 * 1024  # of the dynamic shared memory of a block; 16 KB are left for what warps tell one another
L2_BYTES = 180 * 1024  # of L2 for each block
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def masked(gradient, own, centre, scale, shift, relu):
    """Leaves of the gradients what ReLU lets through, and of the values how far they are from the mean."""
    for e in range(WIDTH):
        own[e] -= centre[e]
        if relu and own[e] * scale[e] + shift[e] <= np.float32(0):  # a NaN is not below zero
            gradient[e] = np.float32(0)


@cuda.jit(cooperative=True, launch_bounds=THREADS)
def one_read(
    dy, x, weight, bias, mean, variance, dx, dweight, dbias, partials, arrived, teams, blocks, room, values, eps, relu
):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)  # `room` vectors of dy, and as many of x
    of_warps = cuda.shared.array((2, WARPS, CHANNELS), np.float32)
    sums = cuda.shared.array((2, CHANNELS), np.float32)
    gradient = cuda.local.array(WIDTH, np.float32)
    own = cuda.local.array(WIDTH, np.float32)
    centre = cuda.local.array(WIDTH, np.float32)
    scale = cuda.local.array(WIDTH, np.float32)
    shift = cuda.local.array(WIDTH, np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    products = cuda.local.array(WIDTH, np.float32)
    t, lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.x % WARP), np.uint32(cuda.threadIdx.x // WARP)
    team, block = np.uint32(cuda.blockIdx.x % teams), np.uint32(cuda.blockIdx.x // teams)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    each = np.uint32((pixels + blocks - 1) // blocks)  # pixels of a block
    first = min(block * each, pixels)
    count = np.uint32((min(first + each, pixels) - first) * ACROSS)  # of vectors
    held = min(count, room)
    column = np.uint32(t % ACROSS * WIDTH)  # the first of the thread's channels, among those of its team

    if team * CHANNELS + column < channels:
        for v in range(t, held, THREADS):
            pixel = first + np.uint32(v // ACROSS)
            copy_async(kept, WIDTH * v, dy, pixel, team * CHANNELS + column)
            copy_async(kept, WIDTH * (room + v), x, pixel, team * CHANNELS + column)
    ptx.cp_async_commit()

    for part in range(team, (channels + CHANNELS - 1) // CHANNELS, teams):
        c = np.uint32(part * CHANNELS + column)
        is_channel = c < channels
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre[e], shift[e] = mean[channel], bias[channel]
            scale[e] = weight[channel] / sqrt(variance[channel] + eps)
            total[e] = products[e] = np.float32(0)
        ptx.cp_async_wait(0)
        if is_channel:
            for v in range(t, held, THREADS):
                load_shared(kept, WIDTH * v, gradient)
                load_shared(kept, WIDTH * (room + v), own)
                masked(gradient, own, centre, scale, shift, relu)
                for e in range(WIDTH):
                    total[e] += gradient[e]
                    products[e] += gradient[e] * own[e]
        if is_channel:
            for v in range(held + t, count, THREADS):
                pixel = first + np.uint32(v // ACROSS)
                load(dy, pixel, c, gradient)
                load(x, pixel, c, own)
                masked(gradient, own, centre, scale, shift, relu)
                for e in range(WIDTH):
                    total[e] += gradient[e]
                    products[e] += gradient[e] * own[e]
        for e in range(WIDTH):
            away = WARP // 2
            while away >= ACROSS:
                total[e] += cuda.shfl_down_sync(ALL, total[e], away)
                products[e] += cuda.shfl_down_sync(ALL, products[e], away)
                away //= 2
            if lane < ACROSS:
                of_warps[0, warp, column + e], of_warps[1, warp, column + e] = total[e], products[e]
        cuda.syncthreads()
        for item in range(warp, 2 * CHANNELS, WARPS):
            found = np.float32(0)
            if lane < WARPS:
                found = of_warps[item // CHANNELS, lane, item % CHANNELS]
            found = warp_sum(found)
            channel = np.uint32(part * CHANNELS + item % CHANNELS)
            if lane == 0 and channel < channels:
                partials[item // CHANNELS, channel, block] = found
        sync_blocks(arrived, part, blocks)

        for item in range(warp, 2 * CHANNELS, WARPS):
            channel = np.uint32(part * CHANNELS + item % CHANNELS)
            found = np.float32(0)
            if channel < channels:
                for other in range(lane, blocks, WARP):
                    found += partials[item // CHANNELS, channel, other]
            found = warp_sum(found)
            if lane == 0:
                sums[item // CHANNELS, item % CHANNELS] = found
                if block == 0 and channel < channels:
                    if item < CHANNELS:
                        dbias[channel] = found
                    else:
                        dweight[channel] = found / sqrt(variance[channel] + eps)
        cuda.syncthreads()
        for e in range(WIDTH):  # from here on the shares that are taken from each value
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            total[e] = sums[0, column + e] / values
            products[e] = sums[1, column + e] / values / (variance[channel] + eps)

        if is_channel:
            for v in range(held + t, count, THREADS):
                pixel = first + np.uint32(v // ACROSS)
                load(dy, pixel, c, gradient)
                load(x, pixel, c, own)
                masked(gradient, own, centre, scale, shift, relu)
                for e in range(WIDTH):
                    own[e] = scale[e] * (gradient[e] - total[e] - own[e] * products[e])
                store(dx, pixel, c, own)
        if is_channel:
            for v in range(t, held, THREADS):
                pixel = first + np.uint32(v // ACROSS)
                load_shared(kept, WIDTH * v, gradient)
                load_shared(kept, WIDTH * (room + v), own)
                masked(gradient, own, centre, scale, shift, relu)
                for e in range(WIDTH):
                    own[e] = scale[e] * (gradient[e] - total[e] - own[e] * products[e])
                store(dx, pixel, c, own)
                if c + teams * CHANNELS < channels:
                    copy_async(kept, WIDTH * v, dy, pixel, c + teams * CHANNELS)
                    copy_async(kept, WIDTH * (room + v), x, pixel, c + teams * CHANNELS)
        ptx.cp_async_commit()


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Threads side by side, teams, blocks of each, and vectors that a block keeps of each array.

    Rows are as long as leaves all pixels of them on the chip, in one team; teams are as many as there is room for.
    """
    vector_bytes = 2 * itemsize * width  # of both arrays
    widest = 1 << (-(-problem.C // width) - 1).bit_length()
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for row_bytes in (128, 64, 32):
        across = min(widest, WARP, row_bytes // (itemsize * width))
        needed = -(-problem.values * across * vector_bytes // (MOST_BYTES + L2_BYTES))
        if needed <= sms:
            break
    teams = max(1, min(-(-problem.C // (across * width)), sms // needed))
    blocks = min(sms // teams, -(-problem.values * across // THREADS))
    vectors = -(-problem.values // blocks) * across
    return across, teams, blocks, min(vectors, MOST_BYTES // vector_bytes)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """dx, dweight and dbias, of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshaped(X, prod(X.shape[:3]), X.shape[3]) for X in (dy, x, dx))
    at_once = width_up_to_four(dy, x, dx)
    across, teams, blocks, room = geometry(problem, format.itemsize, at_once)
    partials = workspace.array("partials", (2, problem.C, blocks), np.float32)
    arrived = workspace.counters(-(-problem.C // (across * at_once)))
    sizes = np.uint32(teams), np.uint32(blocks), np.uint32(room), np.float32(problem.values)
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, partials, arrived, *sizes
    kernel = specialise_for(one_read, format.dtype, at_once, across)
    kept_bytes = 2 * room * at_once * format.itemsize
    return [Launch(kernel, teams * blocks, THREADS, (*arguments, np.float32(problem.eps), problem.relu), kept_bytes)]


@cache
def specialise_for(kernel, dtype, width: int, across: int):
    """The kernel's copy for images of a type, so many channels of a thread, and so many threads side by side."""
    return specialise(kernel, WIDTH=width, ELEMENT=dtype.type, ACROSS=across)
