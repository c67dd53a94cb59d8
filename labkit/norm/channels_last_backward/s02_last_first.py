"""The second read begins where the first one ended, and finds in L2 what was read last.

Blocks that sum go down the pixels from the first image to the last. Of 50 MB of L2 (H100) some hold the last images
then, and the pass that writes dx comes to these first, before what it writes takes their place.

Costs, in passes over memory, each of them all values read or written once:

    2       columns: dy and x read
    3       last_first: dy and x read, dx written; what L2 holds is not read from memory
    5       passes in all

Limited by memory: L2 holds a part only. `s03_in_registers` keeps a few channels on the chip, if images are small.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `is_last_block` of `labkit.parts.sums`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.channels_last_backward import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_fours

THREADS = 512
WIDTH = 4  # channels of a thread
MOST_ACROSS = 32  # threads that stand side by side in a row
LOADS = 2  # of 16 bytes, that a thread has under way of each array
RESIDENT = 2  # blocks that sum, of an SM


@cuda.jit(device=True)
def add_rows(sums, across):
    """The sums of all rows of a block's threads, in its first row; `sums` has those of each thread."""
    t = np.uint32(cuda.threadIdx.x)
    away = np.uint32(THREADS // 2)
    while away >= across:
        cuda.syncthreads()
        if t < away:
            for e in range(WIDTH):
                sums[0, e, t] += sums[0, e, t + away]
                sums[1, e, t] += sums[1, e, t + away]
        away = np.uint32(away // 2)


@cuda.jit(launch_bounds=(THREADS, 2))
def columns(dy, x, weight, bias, mean, variance, dweight, dbias, partials, arrived, across, eps, relu):
    gradient = cuda.local.array((LOADS, WIDTH), np.float32)
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    products = cuda.local.array(WIDTH, np.float32)
    centre = cuda.local.array(WIDTH, np.float32)
    scale = cuda.local.array(WIDTH, np.float32)
    shift = cuda.local.array(WIDTH, np.float32)
    sums = cuda.shared.array((2, WIDTH, THREADS), np.float32)
    t, part, parts = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.x * across + t % across))
    down = np.uint32(THREADS // across)  # rows of a block's threads

    for e in range(WIDTH):
        channel = min(np.uint32(c + e), np.uint32(channels - 1))
        centre[e], shift[e], scale[e] = mean[channel], bias[channel], weight[channel] / sqrt(variance[channel] + eps)
        total[e] = products[e] = np.float32(0)
    for start in range(part * LOADS * down + t // across, pixels, parts * LOADS * down):
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels and c < channels:
                gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, pixel, c)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, pixel, c)
        for k in range(LOADS):
            if np.uint32(start + k * down) < pixels and c < channels:
                for e in range(WIDTH):
                    g, away = gradient[k, e], own[k, e] - centre[e]
                    if relu and away * scale[e] + shift[e] <= np.float32(0):  # a NaN is not below zero
                        g = np.float32(0)
                    total[e] += g
                    products[e] += g * away
    for e in range(WIDTH):
        sums[0, e, t], sums[1, e, t] = total[e], products[e]
    add_rows(sums, across)
    if t < across:
        for e in range(WIDTH):
            if c + e < channels:
                partials[0, part, c + e], partials[1, part, c + e] = sums[0, e, t], sums[1, e, t]

    if is_last_block(arrived, np.uint32(cuda.blockIdx.x), parts):
        for e in range(WIDTH):
            total[e] = products[e] = np.float32(0)
            if c + e < channels:
                for other in range(t // across, parts, down):
                    total[e] += partials[0, other, c + e]
                    products[e] += partials[1, other, c + e]
            sums[0, e, t], sums[1, e, t] = total[e], products[e]
        add_rows(sums, across)
        if t < across:
            for e in range(WIDTH):
                if c + e < channels:
                    dbias[c + e] = sums[0, e, t]
                    dweight[c + e] = sums[1, e, t] / sqrt(variance[c + e] + eps)


@cuda.jit
def last_first(dy, x, weight, bias, mean, variance, dx, dweight, dbias, across, values, eps, relu):
    gradient = cuda.local.array((LOADS, WIDTH), np.float32)
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels, channels = np.uint32(x.shape[0]), np.uint32(x.shape[1])
    c = np.uint32(WIDTH * (cuda.blockIdx.y * across + t % across))
    down = np.uint32(THREADS // across)  # rows of a block's threads
    start = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * LOADS * down + t // across
    if c < channels:
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels:
                gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, pixel, c)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, pixel, c)
        for e in range(WIDTH):
            channel = min(np.uint32(c + e), np.uint32(channels - 1))
            centre, shift, root = mean[channel], bias[channel], sqrt(variance[channel] + eps)
            scale, level, slope = weight[channel] / root, dbias[channel] / values, dweight[channel] / values / root
            for k in range(LOADS):
                if np.uint32(start + k * down) < pixels:
                    g, away = gradient[k, e], own[k, e] - centre
                    g = np.float32(0) if relu and away * scale + shift <= np.float32(0) else g
                    own[k, e] = scale * (g - level - away * slope)
        for k in range(LOADS):
            pixel = np.uint32(start + k * down)
            if pixel < pixels:
                store_row_four(dx, pixel, c, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Threads side by side in a row, a power of two; blocks side by side; and blocks that share their columns."""
    vectors = -(-problem.C // WIDTH)
    across = min(MOST_ACROSS, 1 << (vectors - 1).bit_length())
    wide = -(-vectors // across)
    rows = -(-problem.values // (LOADS * THREADS // across))
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return across, wide, max(1, min(blocks // wide, rows))


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """dx, dweight and dbias, of images in NHWC."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshaped(X, prod(X.shape[:3]), X.shape[3]) for X in (dy, x, dx))
    across, wide, parts = geometry(problem)
    kept = workspace.array("partials", (2, parts, problem.C), np.float32), workspace.counters(wide)
    rows = -(-problem.values // (LOADS * THREADS // across))
    given, eps, values = (dy, x, weight, bias, mean, variance), np.float32(problem.eps), np.float32(problem.values)
    sums = *given, dweight, dbias, *kept, np.uint32(across), eps, problem.relu
    line = *given, dx, dweight, dbias, np.uint32(across), values, eps, problem.relu
    return [
        Launch(specialise_fours(columns, dy, x), (wide, parts), THREADS, sums),
        Launch(specialise_fours(last_first, dy, x, dx), (rows, wide), THREADS, line),
    ]
