"""The second pass runs in reverse order, and finds in L2 what the first one read last.

The first pass reads the pixels from the first image to the last. The 50 MB of L2 (H100) then hold the last images, and
the pass that writes dx reads these first, before its own stores replace them.

Costs in passes over memory, each of which reads or writes all values once:

    2       columns: dy and x read
    3       last_first: dy and x read, dx written; what L2 holds is not read from memory
    5       passes in all

Limited by memory: L2 holds only a part. `s03_in_registers` keeps a few channels of small images on the chip.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last_backward import SUPPORTED
from labkit.norm.images import as_pixels
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_type_and_alignment

THREADS = 512
WIDTH = 4  # channels per thread
MAX_ROW_THREADS = 32  # threads per row
LOADS = 2  # 16-byte loads in flight per thread and array
BLOCKS_PER_SM = 2  # in the kernel that sums


@cuda.jit(device=True)
def add_rows(sums, row_threads):
    """Add the sums of all rows of a block's threads into its first row, in place."""
    t = np.uint32(cuda.threadIdx.x)
    offset = np.uint32(THREADS // 2)
    while offset >= row_threads:
        cuda.syncthreads()
        if t < offset:
            for e in range(WIDTH):
                sums[0, e, t] += sums[0, e, t + offset]
                sums[1, e, t] += sums[1, e, t + offset]
        offset = np.uint32(offset // 2)


@cuda.jit(launch_bounds=(THREADS, BLOCKS_PER_SM))
def columns(dy, x, weight, bias, mean, variance, dweight, dbias, partials, arrived, row_threads, eps, relu):
    dy_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    g_sum = cuda.local.array(WIDTH, np.float32)
    gx_sum = cuda.local.array(WIDTH, np.float32)
    centre = cuda.local.array(WIDTH, np.float32)
    scale = cuda.local.array(WIDTH, np.float32)
    shift = cuda.local.array(WIDTH, np.float32)
    sums = cuda.shared.array((2, WIDTH, THREADS), np.float32)
    t, block, num_blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.x * row_threads + t % row_threads))
    block_rows = np.uint32(THREADS // row_threads)  # rows of the block's threads

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        centre[e], shift[e], scale[e] = mean[channel], bias[channel], weight[channel] / sqrt(variance[channel] + eps)
        g_sum[e] = gx_sum[e] = np.float32(0)
    for start in range(block * LOADS * block_rows + t // row_threads, pixels, num_blocks * LOADS * block_rows):
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels and c < channels:
                dy_reg[k, 0], dy_reg[k, 1], dy_reg[k, 2], dy_reg[k, 3] = load_row_four(dy, pixel, c)
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, pixel, c)
        for k in range(LOADS):
            if np.uint32(start + k * block_rows) < pixels and c < channels:
                for e in range(WIDTH):
                    g, centred = dy_reg[k, e], x_reg[k, e] - centre[e]
                    if relu and centred * scale[e] + shift[e] <= np.float32(0):  # a NaN is not below zero
                        g = np.float32(0)
                    g_sum[e] += g
                    gx_sum[e] += g * centred
    for e in range(WIDTH):
        sums[0, e, t], sums[1, e, t] = g_sum[e], gx_sum[e]
    add_rows(sums, row_threads)
    if t < row_threads:
        for e in range(WIDTH):
            if c + e < channels:
                partials[0, block, c + e], partials[1, block, c + e] = sums[0, e, t], sums[1, e, t]

    if is_last_block(arrived, np.uint32(cuda.blockIdx.x), num_blocks):  # `arrived`: 0 before and after each launch
        for e in range(WIDTH):
            g_sum[e] = gx_sum[e] = np.float32(0)
            if c + e < channels:
                for other in range(t // row_threads, num_blocks, block_rows):
                    g_sum[e] += partials[0, other, c + e]
                    gx_sum[e] += partials[1, other, c + e]
            sums[0, e, t], sums[1, e, t] = g_sum[e], gx_sum[e]
        add_rows(sums, row_threads)
        if t < row_threads:
            for e in range(WIDTH):
                if c + e < channels:
                    dbias[c + e] = sums[0, e, t]
                    dweight[c + e] = sums[1, e, t] / sqrt(variance[c + e] + eps)


@cuda.jit
def last_first(dy, x, weight, bias, mean, variance, dx, dweight, dbias, row_threads, values, eps, relu):
    dy_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.y * row_threads + t % row_threads))
    block_rows = np.uint32(THREADS // row_threads)  # rows of the block's threads
    start = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * LOADS * block_rows + t // row_threads  # in reverse
    if c < channels:
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels:
                dy_reg[k, 0], dy_reg[k, 1], dy_reg[k, 2], dy_reg[k, 3] = load_row_four(dy, pixel, c)
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, pixel, c)
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre, shift, root = mean[channel], bias[channel], sqrt(variance[channel] + eps)
            scale, g_mean, slope = weight[channel] / root, dbias[channel] / values, dweight[channel] / values / root
            for k in range(LOADS):
                if np.uint32(start + k * block_rows) < pixels:
                    g, centred = dy_reg[k, e], x_reg[k, e] - centre
                    g = np.float32(0) if relu and centred * scale + shift <= np.float32(0) else g
                    x_reg[k, e] = scale * (g - g_mean - centred * slope)
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels:
                store_row_four(dx, pixel, c, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Return threads per row, a power of two; blocks per row; and blocks that share columns."""
    vectors = -(-problem.C // WIDTH)
    row_threads = min(MAX_ROW_THREADS, 1 << (vectors - 1).bit_length())
    row_blocks = -(-vectors // row_threads)
    rows = -(-problem.values // (LOADS * THREADS // row_threads))
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return row_threads, row_blocks, max(1, min(blocks // row_blocks, rows))


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_pixels(dy, x, dx)
    row_threads, row_blocks, column_blocks = geometry(problem)
    scratch = workspace.array("partials", (2, column_blocks, problem.C), np.float32), workspace.counters(row_blocks)
    rows = -(-problem.values // (LOADS * THREADS // row_threads))
    inputs, eps, values = (dy, x, weight, bias, mean, variance), np.float32(problem.eps), np.float32(problem.values)
    sum_args = *inputs, dweight, dbias, *scratch, np.uint32(row_threads), eps, problem.relu
    arguments = *inputs, dx, dweight, dbias, np.uint32(row_threads), values, eps, problem.relu
    return [
        Launch(
            specialise_type_and_alignment(columns, dy, x, dtype=format.dtype),
            (row_blocks, column_blocks),
            THREADS,
            sum_args,
        ),
        Launch(
            specialise_type_and_alignment(last_first, dy, x, dx, dtype=format.dtype),
            (rows, row_blocks),
            THREADS,
            arguments,
        ),
    ]
