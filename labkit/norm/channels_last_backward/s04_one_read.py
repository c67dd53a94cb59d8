"""All pixels of a few channels of dy and x stay on the chip between their two uses, and blocks synchronise in between.

In NHWC the values of a channel are a whole pixel apart, and the smallest memory access has 32 bytes. A team of blocks
therefore processes the channels in 128, 64 or 32 bytes of all pixels, as far as the chip has room for both arrays: 210
KB per SM, and a part of L2 (H100). Each thread copies vectors of four neighbouring channels, always the same four of
its row, and sums the values that it copied itself. Vectors that do not fit into shared memory are read after the copies
have arrived, and again, from L2, at the start of the pass that writes dx. In between the blocks of a team write their
sums to memory, synchronise, and each adds all sums, in the same order. A thread that has written dx immediately copies
the next channels of the same pixels into the same slots.

Costs in passes over memory, each of which reads or writes all values once:

    3       one_read: dy and x read, dx written; where there is no room, read again, from L2
    3       passes in all

Limited by the time in which blocks sum and synchronise, and memory is idle: a copy of the same bytes takes three fifths
of the time (H100, 64 x 256 x 56 x 56 in float32).

Parts: `sync_blocks` of `labkit.parts.grid_barrier`; `warp_sum` of `labkit.parts.sums`; `copy_async`, `load`,
`load_shared`, `store` of `labkit.parts.vectors`.
"""

from functools import cache
from math import sqrt

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last_backward import SUPPORTED
from labkit.norm.images import as_pixels
from labkit.parts.grid_barrier import sync_blocks
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import element_constants, width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store

THREADS, WARP, WARPS = 512, 32, 16  # threads per block, threads per warp, warps per block
WIDTH = 4  # channels per vector
ROW_THREADS = 8  # threads per row
CHANNELS = WIDTH * ROW_THREADS  # of a team at a time
ELEMENT = np.float32  # element type of images
MAX_BYTES = 210 * 1024  # of dynamic shared memory per block; 16 KB remain for the exchange between warps
L2_BYTES = 180 * 1024  # of L2 per block
FULL_MASK = 0xFFFFFFFF
specialise_once = cache(specialise)  # copies: one per format and width


@cuda.jit(device=True)
def apply_mask(dy_reg, x_reg, centre, scale, shift, relu):
    """Set gradients that did not pass ReLU to zero, and subtract the mean from the values; both in place."""
    for e in range(WIDTH):
        x_reg[e] -= centre[e]
        if relu and x_reg[e] * scale[e] + shift[e] <= np.float32(0):  # a NaN is not below zero
            dy_reg[e] = np.float32(0)


@cuda.jit(cooperative=True, launch_bounds=THREADS)
def one_read(
    dy, x, weight, bias, mean, variance, dx, dweight, dbias, partials, arrived, teams, blocks, capacity, num_values,
    eps, relu
):  # fmt: skip
    smem = cuda.shared.array(0, ELEMENT, alignment=16)  # `capacity` vectors of dy, then the same of x
    warp_partials = cuda.shared.array((2, WARPS, CHANNELS), np.float32)
    sums = cuda.shared.array((2, CHANNELS), np.float32)
    dy_reg = cuda.local.array(WIDTH, np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    centre = cuda.local.array(WIDTH, np.float32)
    scale = cuda.local.array(WIDTH, np.float32)
    shift = cuda.local.array(WIDTH, np.float32)
    g_sum = cuda.local.array(WIDTH, np.float32)
    gx_sum = cuda.local.array(WIDTH, np.float32)
    t, lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.x % WARP), np.uint32(cuda.threadIdx.x // WARP)
    team, block = np.uint32(cuda.blockIdx.x % teams), np.uint32(cuda.blockIdx.x // teams)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    pixels_per_block = np.uint32((pixels + blocks - 1) // blocks)
    first = min(block * pixels_per_block, pixels)
    count = np.uint32((min(first + pixels_per_block, pixels) - first) * ROW_THREADS)  # in vectors
    num_resident = min(count, capacity)
    column = np.uint32(t % ROW_THREADS * WIDTH)  # the first of the thread's channels, among those of its team

    # -- load the first channels --
    if team * CHANNELS + column < channels:
        for v in range(t, num_resident, THREADS):
            pixel = first + np.uint32(v // ROW_THREADS)
            copy_async(smem, WIDTH * v, dy, pixel, team * CHANNELS + column)
            copy_async(smem, WIDTH * (capacity + v), x, pixel, team * CHANNELS + column)
    ptx.cp_async_commit()

    for chunk in range(team, (channels + CHANNELS - 1) // CHANNELS, teams):
        c = np.uint32(chunk * CHANNELS + column)
        has_channel = c < channels
        # -- sum the values of these channels --
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre[e], shift[e] = mean[channel], bias[channel]
            scale[e] = weight[channel] / sqrt(variance[channel] + eps)
            g_sum[e] = gx_sum[e] = np.float32(0)
        ptx.cp_async_wait(0)
        if has_channel:
            for v in range(t, num_resident, THREADS):
                load_shared(smem, WIDTH * v, dy_reg)
                load_shared(smem, WIDTH * (capacity + v), x_reg)
                apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
                for e in range(WIDTH):
                    g_sum[e] += dy_reg[e]
                    gx_sum[e] += dy_reg[e] * x_reg[e]
        if has_channel:
            for v in range(num_resident + t, count, THREADS):
                pixel = first + np.uint32(v // ROW_THREADS)
                load(dy, pixel, c, dy_reg)
                load(x, pixel, c, x_reg)
                apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
                for e in range(WIDTH):
                    g_sum[e] += dy_reg[e]
                    gx_sum[e] += dy_reg[e] * x_reg[e]
        # -- sums of the block --
        for e in range(WIDTH):
            offset = WARP // 2
            while offset >= ROW_THREADS:
                g_sum[e] += cuda.shfl_down_sync(FULL_MASK, g_sum[e], offset)
                gx_sum[e] += cuda.shfl_down_sync(FULL_MASK, gx_sum[e], offset)
                offset //= 2
            if lane < ROW_THREADS:
                warp_partials[0, warp, column + e], warp_partials[1, warp, column + e] = g_sum[e], gx_sum[e]
        cuda.syncthreads()
        for item in range(warp, 2 * CHANNELS, WARPS):
            partial = np.float32(0)
            if lane < WARPS:
                partial = warp_partials[item // CHANNELS, lane, item % CHANNELS]
            partial = warp_sum(partial)
            channel = np.uint32(chunk * CHANNELS + item % CHANNELS)
            if lane == 0 and channel < channels:
                partials[item // CHANNELS, channel, block] = partial
        # -- exchange within the team --
        sync_blocks(arrived, chunk, blocks)

        # -- sums of these channels --
        for item in range(warp, 2 * CHANNELS, WARPS):
            channel = np.uint32(chunk * CHANNELS + item % CHANNELS)
            partial = np.float32(0)
            if channel < channels:
                for other in range(lane, blocks, WARP):
                    partial += partials[item // CHANNELS, channel, other]
            partial = warp_sum(partial)
            if lane == 0:
                sums[item // CHANNELS, item % CHANNELS] = partial
                if block == 0 and channel < channels:
                    if item < CHANNELS:
                        dbias[channel] = partial
                    else:
                        dweight[channel] = partial / sqrt(variance[channel] + eps)
        cuda.syncthreads()
        for e in range(WIDTH):  # from here on g_sum and gx_sum hold what is subtracted from each value
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            g_sum[e] = sums[0, column + e] / num_values
            gx_sum[e] = sums[1, column + e] / num_values / (variance[channel] + eps)

        # -- write dx, load the next channels --
        if has_channel:
            for v in range(num_resident + t, count, THREADS):
                pixel = first + np.uint32(v // ROW_THREADS)
                load(dy, pixel, c, dy_reg)
                load(x, pixel, c, x_reg)
                apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
                for e in range(WIDTH):
                    x_reg[e] = scale[e] * (dy_reg[e] - g_sum[e] - x_reg[e] * gx_sum[e])
                store(dx, pixel, c, x_reg)
        if has_channel:
            for v in range(t, num_resident, THREADS):
                pixel = first + np.uint32(v // ROW_THREADS)
                load_shared(smem, WIDTH * v, dy_reg)
                load_shared(smem, WIDTH * (capacity + v), x_reg)
                apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
                for e in range(WIDTH):
                    x_reg[e] = scale[e] * (dy_reg[e] - g_sum[e] - x_reg[e] * gx_sum[e])
                store(dx, pixel, c, x_reg)
                if c + teams * CHANNELS < channels:
                    copy_async(smem, WIDTH * v, dy, pixel, c + teams * CHANNELS)
                    copy_async(smem, WIDTH * (capacity + v), x, pixel, c + teams * CHANNELS)
        ptx.cp_async_commit()


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Return threads per row, teams, blocks per team, and vectors of each array in a block's shared memory.

    Rows have the largest size for which all their pixels fit on the chip, in one team; the number of teams is the
    largest that fits.
    """
    vector_bytes = 2 * itemsize * width  # bytes of both arrays
    widest = 1 << (-(-problem.C // width) - 1).bit_length()
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for row_bytes in (128, 64, 32):
        row_threads = min(widest, WARP, row_bytes // (itemsize * width))
        needed = -(-problem.values * row_threads * vector_bytes // (MAX_BYTES + L2_BYTES))
        if needed <= sms:
            break
    teams = max(1, min(-(-problem.C // (row_threads * width)), sms // needed))
    blocks = min(sms // teams, -(-problem.values * row_threads // THREADS))
    vectors = -(-problem.values // blocks) * row_threads
    return row_threads, teams, blocks, min(vectors, MAX_BYTES // vector_bytes)


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_pixels(dy, x, dx)
    width = width_up_to_four(dy, x, dx)
    row_threads, teams, blocks, capacity = geometry(problem, format.itemsize, width)
    partials = workspace.array("partials", (2, problem.C, blocks), np.float32)
    arrived = workspace.counters(-(-problem.C // (row_threads * width)))
    sizes = np.uint32(teams), np.uint32(blocks), np.uint32(capacity), np.float32(problem.values)
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, partials, arrived, *sizes
    kernel = specialise_once(one_read, ROW_THREADS=row_threads, **element_constants(format.dtype, width))
    smem_bytes = 2 * capacity * width * format.itemsize
    return [Launch(kernel, teams * blocks, THREADS, (*arguments, np.float32(problem.eps), problem.relu), smem_bytes)]
