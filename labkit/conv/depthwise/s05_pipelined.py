"""Pixels of three rows are on their way at a time, to a ring in shared memory.

`s02_strips` has the pixels of one row on their way, and memory needs more of them to run at full speed. Registers would
not hold more. Each thread has a ring of four rows in shared memory instead, which asynchronous copies fill; it waits
for its own copies alone. A copy also writes the zeros around the image. This step is for 16-bit numbers in NHWC, and
for filters of up to 5 x 5 taps.

Costs of T = R * S taps, for a strip per image, a stride of 1, whole tiles and no padding:

    VECTORS * H / (P * COLUMNS * CHANNELS)                              loads of x per element of y
    (AHEAD + 1) * VECTORS * WORDS * THREADS * 4 + BLOCK_TAPS * 4        bytes of shared memory per block
    1                                                                   barriers per block

Limited by memory for 3 x 3 taps, if there are enough of them for all SMs; else by the latency of the first loads.
Compute capability 8.0.

Parts: `fast_divide` of `labkit.parts.division`; `load_taps`, `copy_row` and the like of this folder.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.depthwise import DEPTHWISE, RING_BENCHED, RING_EXAMPLES, RING_FIELDS
from labkit.conv.depthwise.phases import phases
from labkit.conv.depthwise.rings import copy_row, read_row
from labkit.conv.depthwise.taps import load_taps
from labkit.conv.depthwise.tiling import LANES, THREADS, Tiling, best_ring_tiling, make_image, make_strips, rows_ahead
from labkit.conv.depthwise.vectors import (
    as_elements,
    store_vectors,
    vector_constants,
)
from labkit.formats import BF16, FP16
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

FORMATS = BF16, FP16
EXAMPLES = RING_EXAMPLES
BENCHED = RING_BENCHED
SUPPORTED = {"result": ("y",), **DEPTHWISE}
SUPPORTED |= RING_FIELDS
TYPICAL_RATE = 13e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WORDS, COLUMNS = 2, 4  # of a vector, two channels in a word; of a tile
CHANNELS = 2 * WORDS  # of a thread
TAPS, PENDING = R * S, -(-R // STRIDE_H)  # rows of outputs under a row of pixels
SUMS = COLUMNS * CHANNELS
VECTORS = (COLUMNS - 1) * STRIDE_W + S  # of a row of pixels
AHEAD = 3  # rows of outputs whose new pixels are on their way
IN_FLIGHT = AHEAD - 1  # of them, while a row is used
SLOT = VECTORS * STRIDE_H  # vectors of a slot of the ring
LAST_SLOT = AHEAD * SLOT
RING = (LAST_SLOT + SLOT) * THREADS * WORDS
TAPS_BYTE = RING * 4
BLOCK_TAPS = LANES * CHANNELS * TAPS  # at most
VALUES = VECTORS * CHANNELS


@cuda.jit(device=True)
def shift(acc):
    """Make the sums of a row those of the row before."""
    for k in range(PENDING):
        for j in range(SUMS):
            acc[k, j] = acc[k + 1, j] if k + 1 < PENDING else np.float32(0)


@cuda.jit(device=True)
def multiply(acc, x_reg, w_reg, e):
    """Add the products of row e of the new rows of pixels to rows of sums."""
    for k in range(PENDING):
        r = R - STRIDE_H + e - k * STRIDE_H
        if r >= 0:
            for s in range(S):
                for j in range(COLUMNS):
                    for v in range(CHANNELS):
                        pixel = x_reg[(j * STRIDE_W + s) * CHANNELS + v]
                        acc[k, j * CHANNELS + v] += pixel * w_reg[r * S + s, v]


@cuda.jit
def pipelined(x, w, y, x_at, y_at, strip, top, left, inside_begin, inside_end, flipped):
    ring = ptx.shared_array(0, RING, np.uint32)
    taps = ptx.shared_array(TAPS_BYTE, BLOCK_TAPS, np.float32)
    w_reg = cuda.local.array((TAPS, CHANNELS), np.float32)
    acc = cuda.local.array((PENDING, SUMS), np.float32)
    x_reg = cuda.local.array(VALUES, np.float32)
    lane, thread = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    t = np.uint32(thread * np.uint32(cuda.blockDim.x) + lane)
    lanes, block_rows = np.uint32(cuda.blockDim.x), np.uint32(cuda.blockDim.y)
    part = fast_divide(np.uint32(cuda.blockIdx.x), strip.chunks)
    lane0 = np.uint32((cuda.blockIdx.x - part * strip.chunks.value) * lanes)  # of the block
    num_parts = fast_divide(np.uint32(cuda.gridDim.x), strip.chunks)

    load_taps(w, taps, w_reg, lane0, strip.channels, flipped)
    if np.uint32((lane0 + lane) * np.uint32(CHANNELS)) >= strip.channels:
        return
    item = np.uint32(part * block_rows + thread)
    while item < strip.items:
        # -- locate the strip --
        column = fast_divide(item, strip.tiles)
        tile = np.uint32(item - column * strip.tiles.value)
        n = fast_divide(column, strip.strips)
        begin_row = np.int32(np.uint32(column - n * strip.strips.value) * strip.strip_rows)
        end_row = np.int32(min(np.int32(y_at.rows), np.int32(begin_row + strip.strip_rows)))
        first = np.uint32(tile * np.uint32(COLUMNS * STRIDE_W) - left)  # vector of pixels
        q = np.uint32(tile * np.uint32(COLUMNS))  # vector of outputs
        p = np.int32(max(np.int32(begin_row - np.int32(PENDING - 1)), inside_begin))
        copy_end = np.int32(min(end_row, inside_end))
        row = np.uint32(p * np.int32(STRIDE_H) + np.int32(R - STRIDE_H) - top)
        i = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + first * x_at.step)
        o = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + q * y_at.step
        )
        for k in range(PENDING):
            for j in range(SUMS):
                acc[k, j] = np.float32(0)
        copy_p, copy_slot, slot = p, np.uint32(0), np.uint32(0)
        for _ in range(AHEAD):
            if copy_p < copy_end:
                for e in range(STRIDE_H):
                    end = x_at.vectors if row < x_at.rows else np.uint32(0)
                    copy_row(ring, np.uint32(copy_slot + e * VECTORS), t, x, i, x_at.step, VECTORS, first, end)
                    row, i = np.uint32(row + np.uint32(1)), np.uint32(i + x_at.row)
            ptx.cp_async_commit()
            copy_p, copy_slot = np.int32(copy_p + np.int32(1)), np.uint32(copy_slot + np.uint32(SLOT))

        # -- slide over the image --
        while p < copy_end:
            ptx.cp_async_wait(IN_FLIGHT)
            shift(acc)
            for e in range(STRIDE_H):
                read_row(ring, np.uint32(slot + e * VECTORS), t, VECTORS, x_reg)
                multiply(acc, x_reg, w_reg, e)
            if copy_p < copy_end:
                for e in range(STRIDE_H):
                    end = x_at.vectors if row < x_at.rows else np.uint32(0)
                    copy_row(ring, np.uint32(copy_slot + e * VECTORS), t, x, i, x_at.step, VECTORS, first, end)
                    row, i = np.uint32(row + np.uint32(1)), np.uint32(i + x_at.row)
            ptx.cp_async_commit()
            copy_p = np.int32(copy_p + np.int32(1))
            copy_slot = np.uint32(copy_slot + np.uint32(SLOT)) if copy_slot < LAST_SLOT else np.uint32(0)
            slot = np.uint32(slot + np.uint32(SLOT)) if slot < LAST_SLOT else np.uint32(0)
            if p >= begin_row:  # the row is complete
                store_vectors(y, o, y_at.step, COLUMNS, q, y_at.vectors, acc, 0)
            o = np.uint32(o + y_at.row)
            p = np.int32(p + np.int32(1))
        # -- rows below it add nothing --
        while p < end_row:
            shift(acc)
            if p >= begin_row:
                store_vectors(y, o, y_at.step, COLUMNS, q, y_at.vectors, acc, 0)
            o = np.uint32(o + y_at.row)
            p = np.int32(p + np.int32(1))
        item = np.uint32(item + num_parts * block_rows)


def launches(x, w, y, problem, format, tiling=None):
    """y = x * w, each channel with its own filter, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling = tiling or best_ring_tiling(problem)
    halo = -(-problem.R // problem.stride_h) - 1
    (phase,) = phases(problem, "y")
    x_at, y_at = (make_image(problem, name, tiling, format, phase) for name in "xy")
    strip, grid, block = make_strips(problem, tiling, problem.P, problem.Q, halo)
    sizes = problem.R, problem.S, problem.stride_h, problem.stride_w
    kernel = specialise_tiling(tiling, format, *sizes)
    below = problem.R - problem.top  # rows of pixels from the first under an output to the first below its last tap
    inside = -((below - 1) // problem.stride_h), -((below - problem.stride_h - problem.H) // problem.stride_h)
    numbers = np.int32(problem.top), np.uint32(problem.left), *map(np.int32, inside), bool(problem.flipped)
    arrays = as_elements(x, format, tiling.width), as_elements(w, format), as_elements(y, format, tiling.width)
    constants = kernel.py_func.__globals__
    shared_bytes = constants["TAPS_BYTE"] + constants["BLOCK_TAPS"] * 4
    return [Launch(kernel, grid, block, (*arrays, x_at, y_at, strip, *numbers), shared_bytes)]


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w):
    """Return the kernel for a tiling, a format, filters of a size and their strides."""
    bounded = cuda.jit(launch_bounds=(THREADS, tiling.blocks))(pipelined.py_func)
    vectors = ((tiling.columns - 1) * stride_w + S) * stride_h
    sizes = {"R": R, "S": S, "TAPS": R * S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "COLUMNS": tiling.columns}
    sizes |= {"CHANNELS": tiling.width, "AHEAD": rows_ahead(tiling, vectors, LANES * tiling.width * R * S * 4)}
    return specialise(bounded, **sizes, **vector_constants(format, tiling.width))
