"""A thread keeps the moments of four neighbouring channels, and goes down the pixels of all images.

In NHWC the channels of a pixel lie side by side, and images are a matrix: a row for each pixel, a column for each
channel. Threads of a warp take neighbours in a row, so that all that is loaded is used, and no sum crosses lanes until
the end, when the rows of a block are merged pairwise. Blocks that share columns leave what they found in memory, and
the one that is last to be done merges that.

Costs, in passes over memory, each of them all values read or written once:

    1       columns: read
    2       fused: read, written
    3       passes in all

Limited by memory.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `merge_moments` of `labkit.parts.moments`;
`is_last_block` of `labkit.parts.sums`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.moments import ROWS, merge_moments
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_fours

THREADS = 512
WIDTH = 4  # channels of a thread
MOST_ACROSS = 32  # threads that stand side by side in a row
LOADS = 4  # of 16 bytes, that a thread has under way
RESIDENT = 2  # blocks that sum, of an SM


@cuda.jit(device=True)
def merge_rows(moments, across):
    """The moments of all rows of a block's threads, in its first row; `moments` has those of each thread.

    Moments lie as four of `ROWS`, each for the four channels of a thread.
    """
    t = np.uint32(cuda.threadIdx.x)
    away = np.uint32(THREADS // 2)
    while away >= across:
        cuda.syncthreads()
        if t < away:
            for e in range(WIDTH):
                a, b, c, d = moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t]
                p, q = moments[0, e, t + away], moments[1, e, t + away]
                r, s = moments[2, e, t + away], moments[3, e, t + away]
                a, b, c, d = merge_moments(a, b, c, d, p, q, r, s)
                moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = a, b, c, d
        away = np.uint32(away // 2)


@cuda.jit(launch_bounds=(THREADS, 2))
def columns(x, mean, variance, running_mean, running_variance, partials, arrived, across, factor):
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    average = cuda.local.array(WIDTH, np.float32)
    rest = cuda.local.array(WIDTH, np.float32)
    squares = cuda.local.array(WIDTH, np.float32)
    moments = cuda.shared.array((ROWS, WIDTH, THREADS), np.float32)
    t, part, parts = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.x * across + t % across))
    down = np.uint32(THREADS // across)  # rows of a block's threads

    zero = count = np.float32(0)
    for e in range(WIDTH):
        average[e] = rest[e] = squares[e] = zero
    for start in range(part * LOADS * down + t // across, pixels, parts * LOADS * down):
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels and c < channels:
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, pixel, c)
        if c < channels:
            values = np.float32(min(np.uint32(LOADS), np.uint32((pixels - start + down - 1) // down)))
            for e in range(WIDTH):
                total = own_squares = zero
                for k in range(LOADS):
                    if np.uint32(start + k * down) < pixels:
                        value = own[k, e] - own[0, e]
                        total += value
                        own_squares += value * value
                share = total / values
                _, average[e], rest[e], squares[e] = merge_moments(
                    count, average[e], rest[e], squares[e], values, own[0, e], share, own_squares - total * share
                )
            count += values
    for e in range(WIDTH):
        moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = count, average[e], rest[e], squares[e]
    merge_rows(moments, across)
    if t < across:
        for e in range(WIDTH):
            if c + e < channels:
                for field in range(ROWS):
                    partials[field, part, c + e] = moments[field, e, t]

    if is_last_block(arrived, np.uint32(cuda.blockIdx.x), parts):
        for e in range(WIDTH):
            values = centre = lost = total = zero
            if c + e < channels:
                for other in range(t // across, parts, down):
                    p, q = partials[0, other, c + e], partials[1, other, c + e]
                    r, s = partials[2, other, c + e], partials[3, other, c + e]
                    values, centre, lost, total = merge_moments(values, centre, lost, total, p, q, r, s)
            moments[0, e, t], moments[1, e, t], moments[2, e, t], moments[3, e, t] = values, centre, lost, total
        merge_rows(moments, across)
        if t < across:
            for e in range(WIDTH):
                if c + e < channels:
                    values, centre = moments[0, e, t], moments[1, e, t] + moments[2, e, t]
                    mean[c + e] = centre
                    variance[c + e] = moments[3, e, t] / values
                    unbiased = moments[3, e, t] / (values - np.float32(1))
                    keep = np.float32(1) - factor
                    running_mean[c + e] = keep * running_mean[c + e] + factor * centre
                    running_variance[c + e] = keep * running_variance[c + e] + factor * unbiased


@cuda.jit
def fused(x, mean, variance, weight, bias, y, across, eps, relu):
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.y * across + t % across))
    down = np.uint32(THREADS // across)  # rows of a block's threads
    start = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * LOADS * down + t // across  # L2 holds the last pixels
    if c < channels:
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels:
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, pixel, c)
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre, shift = mean[channel], bias[channel]
            scale = weight[channel] / sqrt(variance[channel] + eps)
            for k in range(LOADS):
                if np.uint32(start + k * down) < pixels:
                    value = (own[k, e] - centre) * scale + shift
                    own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels:
                store_row_four(y, pixel, c, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Threads side by side in a row, a power of two; blocks side by side; and blocks that share their columns."""
    vectors = -(-problem.C // WIDTH)
    across = min(MOST_ACROSS, 1 << (vectors - 1).bit_length())
    wide = -(-vectors // across)
    rows = -(-problem.values // (LOADS * THREADS // across))
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return across, wide, max(1, min(blocks // wide, rows))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, y = reshaped(x, prod(x.shape[:3]), x.shape[3]), reshaped(y, prod(y.shape[:3]), y.shape[3])
    across, wide, parts = geometry(problem)
    partials = workspace.array("partials", (ROWS, parts, problem.C), np.float32)
    kept = mean, variance, running_mean, running_variance, partials, workspace.counters(wide)
    rows = -(-problem.values // (LOADS * THREADS // across))
    line = x, mean, variance, weight, bias, y, np.uint32(across), np.float32(problem.eps), problem.relu
    return [
        Launch(
            specialise_fours(columns, x),
            (wide, parts),
            THREADS,
            (x, *kept, np.uint32(across), np.float32(problem.factor)),
        ),
        Launch(specialise_fours(fused, x, y), (rows, wide), THREADS, line),
    ]
