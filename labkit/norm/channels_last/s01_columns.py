"""A thread accumulates the moments of four neighbouring channels over the pixels of all images.

In NHWC images are a matrix: a row per pixel, a column per channel. The threads of a warp read neighbours of a row, so
that accesses are coalesced. No reduction crosses lanes until the end, when the rows of a block's threads are merged
pairwise. Blocks that share columns write their moments to memory, and the last block to finish merges them.

Costs in passes over memory, each of which reads or writes all values once:

    1       columns: read
    2       fused: read, written
    3       passes in all

Limited by memory.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `merge_moments` of `labkit.parts.moments`;
`is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last import SUPPORTED
from labkit.norm.images import as_pixels
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.moments import MOMENT_FIELDS, merge_moments
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_type_and_alignment

THREADS = 512
WIDTH = 4  # channels per thread
MAX_ROW_THREADS = 32  # threads per row
LOADS = 4  # 16-byte loads in flight per thread
BLOCKS_PER_SM = 2  # in the kernel that sums


@cuda.jit(device=True)
def merge_rows(moments, row_threads):
    """Merge the moments of all rows of a block's threads into its first row, in place.

    `moments` has `MOMENT_FIELDS` numbers, for four channels, of each thread.
    """
    t = np.uint32(cuda.threadIdx.x)
    offset = np.uint32(THREADS // 2)
    while offset >= row_threads:
        cuda.syncthreads()
        if t < offset:
            for e in range(WIDTH):
                n1, mean1, low1, squares1 = moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t]
                n2, mean2 = moments[0, e, t + offset], moments[1, e, t + offset]
                low2, squares2 = moments[2, e, t + offset], moments[3, e, t + offset]
                n1, mean1, low1, squares1 = merge_moments(n1, mean1, low1, squares1, n2, mean2, low2, squares2)
                moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = n1, mean1, low1, squares1
        offset = np.uint32(offset // 2)


@cuda.jit(launch_bounds=(THREADS, BLOCKS_PER_SM))
def columns(x, mean, variance, running_mean, running_variance, partials, arrived, row_threads, momentum):
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    means = cuda.local.array(WIDTH, np.float32)
    mean_low = cuda.local.array(WIDTH, np.float32)
    m2 = cuda.local.array(WIDTH, np.float32)  # sums of squared deviations from the means
    moments = cuda.shared.array((MOMENT_FIELDS, WIDTH, THREADS), np.float32)
    t, block, num_blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.x * row_threads + t % row_threads))
    block_rows = np.uint32(THREADS // row_threads)  # rows of the block's threads

    # -- moments of the thread --
    zero = count = np.float32(0)
    for e in range(WIDTH):
        means[e] = mean_low[e] = m2[e] = zero
    for start in range(block * LOADS * block_rows + t // row_threads, pixels, num_blocks * LOADS * block_rows):
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels and c < channels:
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, pixel, c)
        if c < channels:
            n = np.float32(min(np.uint32(LOADS), np.uint32((pixels - start + block_rows - 1) // block_rows)))
            for e in range(WIDTH):
                total = sq = zero
                for k in range(LOADS):
                    if np.uint32(start + k * block_rows) < pixels:
                        value = x_reg[k, e] - x_reg[0, e]
                        total += value
                        sq += value * value
                shift = total / n
                _, means[e], mean_low[e], m2[e] = merge_moments(
                    count, means[e], mean_low[e], m2[e], n, x_reg[0, e], shift, sq - total * shift
                )
            count += n
    for e in range(WIDTH):
        moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = count, means[e], mean_low[e], m2[e]
    # -- merge the threads of the block --
    merge_rows(moments, row_threads)
    if t < row_threads:
        for e in range(WIDTH):
            if c + e < channels:
                for field in range(MOMENT_FIELDS):
                    partials[field, block, c + e] = moments[field, e, t]

    # -- the last block merges all blocks --
    if is_last_block(arrived, np.uint32(cuda.blockIdx.x), num_blocks):  # `arrived`: 0 before and after each launch
        for e in range(WIDTH):
            n = centre = low = total = zero
            if c + e < channels:
                for other in range(t // row_threads, num_blocks, block_rows):
                    other_n, other_mean = partials[0, other, c + e], partials[1, other, c + e]
                    other_low, other_m2 = partials[2, other, c + e], partials[3, other, c + e]
                    n, centre, low, total = merge_moments(
                        n, centre, low, total, other_n, other_mean, other_low, other_m2
                    )
            moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = n, centre, low, total
        merge_rows(moments, row_threads)
        if t < row_threads:
            for e in range(WIDTH):
                if c + e < channels:
                    n, centre = moments[0, e, t], moments[1, e, t] + moments[2, e, t]
                    mean[c + e] = centre
                    variance[c + e] = moments[3, e, t] / n
                    unbiased = moments[3, e, t] / (n - np.float32(1))
                    keep = np.float32(1) - momentum
                    running_mean[c + e] = keep * running_mean[c + e] + momentum * centre
                    running_variance[c + e] = keep * running_variance[c + e] + momentum * unbiased


@cuda.jit
def fused(x, mean, variance, weight, bias, y, row_threads, eps, relu):
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.y * row_threads + t % row_threads))
    block_rows = np.uint32(THREADS // row_threads)  # rows of the block's threads
    # in reverse: L2 holds the last pixels
    start = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * LOADS * block_rows + t // row_threads
    if c < channels:
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels:
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, pixel, c)
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre, shift = mean[channel], bias[channel]
            scale = weight[channel] / sqrt(variance[channel] + eps)
            for k in range(LOADS):
                if np.uint32(start + k * block_rows) < pixels:
                    value = (x_reg[k, e] - centre) * scale + shift
                    x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        for k in range(LOADS):
            pixel = np.uint32(start + k * block_rows)
            if pixel < pixels:
                store_row_four(y, pixel, c, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Return threads per row, a power of two; blocks per row; and blocks that share columns."""
    vectors = -(-problem.C // WIDTH)
    row_threads = min(MAX_ROW_THREADS, 1 << (vectors - 1).bit_length())
    row_blocks = -(-vectors // row_threads)
    rows = -(-problem.values // (LOADS * THREADS // row_threads))
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return row_threads, row_blocks, max(1, min(blocks // row_blocks, rows))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """Return the launches for y and all statistics of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_pixels(x, y)
    row_threads, row_blocks, column_blocks = geometry(problem)
    partials = workspace.array("partials", (MOMENT_FIELDS, column_blocks, problem.C), np.float32)
    statistics = mean, variance, running_mean, running_variance, partials, workspace.counters(row_blocks)
    rows = -(-problem.values // (LOADS * THREADS // row_threads))
    sum_args = x, *statistics, np.uint32(row_threads), np.float32(problem.batch_weight)
    y_args = x, mean, variance, weight, bias, y, np.uint32(row_threads), np.float32(problem.eps), problem.relu
    return [
        Launch(
            specialise_type_and_alignment(columns, x, dtype=format.dtype),
            (row_blocks, column_blocks),
            THREADS,
            sum_args,
        ),
        Launch(specialise_type_and_alignment(fused, x, y, dtype=format.dtype), (rows, row_blocks), THREADS, y_args),
    ]
