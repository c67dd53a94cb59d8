"""The gradient of the images, with three rows of the outputs' gradient on their way to a ring in shared memory.

This is `s03_backward_data` with the ring of `s05_pipelined`.

Costs of T = R * S taps, for a strip per image, a stride of 1, whole tiles and no padding:

    (VECTORS * W / COLUMNS - 2 * (S - 1)) * P / (H * W * CHANNELS)      loads of y per element of x
    (AHEAD + 1) * VECTORS * WORDS * THREADS * 4 + BLOCK_TAPS * 4        bytes of shared memory per block
    1                                                                   barriers per block

Limited as `s05_pipelined` is. Compute capability 8.0.

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
from labkit.conv.problem import BackwardData
from labkit.formats import BF16, FP16
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

PROBLEM = BackwardData
FORMATS = BF16, FP16
EXAMPLES = RING_EXAMPLES
BENCHED = RING_BENCHED
SUPPORTED = {"result": ("x",), **DEPTHWISE}
SUPPORTED |= RING_FIELDS
TYPICAL_RATE = 13e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WORDS, COLUMNS = 2, 4  # of a vector, two channels in a word; of a tile
OFFSET = 2  # of a tile's first pixel from the output under its tap 0, the first loaded one being at 0, in pixels
CHANNELS = 2 * WORDS  # of a thread
TAPS, PENDING = R * S, max(R, STRIDE_H)  # rows of pixels over a row of outputs
SUMS = COLUMNS * CHANNELS
VECTORS = (COLUMNS - 1 + OFFSET) // STRIDE_W + 1  # of a row of outputs
VALUES = VECTORS * CHANNELS
AHEAD = 3  # rows of outputs that are on their way
IN_FLIGHT = AHEAD - 1  # of them, while a row is used
LAST_SLOT = AHEAD * VECTORS  # of the ring
RING = (LAST_SLOT + VECTORS) * THREADS * WORDS
TAPS_BYTE = RING * 4
BLOCK_TAPS = LANES * CHANNELS * TAPS  # at most


@cuda.jit(device=True)
def shift(acc):
    """Make the sums of a row those of the row STRIDE_H before."""
    for r in range(PENDING):
        for j in range(SUMS):
            acc[r, j] = acc[r + STRIDE_H, j] if r + STRIDE_H < PENDING else np.float32(0)


@cuda.jit(device=True)
def multiply(acc, y_reg, w_reg):
    """Add the products of a row of the gradient to rows of sums."""
    for r in range(R):
        for s in range(S):
            for j in range(COLUMNS):
                if (j + OFFSET - s) % STRIDE_W == 0:
                    for v in range(CHANNELS):
                        gradient = y_reg[(j + OFFSET - s) // STRIDE_W * CHANNELS + v]
                        acc[r, j * CHANNELS + v] += gradient * w_reg[r * S + s, v]


@cuda.jit
def pipelined_data(x, w, y, x_at, y_at, strip, top, first_row, vectors_left, flipped):
    ring = ptx.shared_array(0, RING, np.uint32)
    taps = ptx.shared_array(TAPS_BYTE, BLOCK_TAPS, np.float32)
    w_reg = cuda.local.array((TAPS, CHANNELS), np.float32)
    acc = cuda.local.array((PENDING, SUMS), np.float32)
    y_reg = cuda.local.array(VALUES, np.float32)
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
        begin_row = np.int32(np.uint32(column - n * strip.strips.value) * strip.strip_rows + first_row)
        end_row = np.int32(begin_row + strip.strip_rows)
        first = np.uint32(tile * np.uint32(COLUMNS // STRIDE_W) - vectors_left)  # vector of outputs
        col = np.uint32(tile * np.uint32(COLUMNS))  # vector of pixels
        p = np.int32(max(np.int32(begin_row - np.int32((R - 1) // STRIDE_H)), np.int32(0)))
        row = np.uint32(p * np.int32(STRIDE_H) - top)  # of pixels
        i = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + first * y_at.step
        )
        o = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + col * x_at.step)
        for r in range(PENDING):
            for j in range(SUMS):
                acc[r, j] = np.float32(0)
        copy_p, copy_slot, slot = p, np.uint32(0), np.uint32(0)
        copy_end = np.int32(min(end_row, np.int32(y_at.rows)))
        for _ in range(AHEAD):
            if copy_p < copy_end:
                copy_row(ring, copy_slot, t, y, i, y_at.step, VECTORS, first, y_at.vectors)
            ptx.cp_async_commit()
            copy_p, i = np.int32(copy_p + np.int32(1)), np.uint32(i + y_at.row)
            copy_slot = np.uint32(copy_slot + np.uint32(VECTORS))

        # -- slide over the outputs --
        while p < copy_end:
            ptx.cp_async_wait(IN_FLIGHT)
            shift(acc)
            read_row(ring, slot, t, VECTORS, y_reg)
            if copy_p < copy_end:
                copy_row(ring, copy_slot, t, y, i, y_at.step, VECTORS, first, y_at.vectors)
            ptx.cp_async_commit()
            copy_p, i = np.int32(copy_p + np.int32(1)), np.uint32(i + y_at.row)
            copy_slot = np.uint32(copy_slot + np.uint32(VECTORS)) if copy_slot < LAST_SLOT else np.uint32(0)
            slot = np.uint32(slot + np.uint32(VECTORS)) if slot < LAST_SLOT else np.uint32(0)
            multiply(acc, y_reg, w_reg)
            for m in range(STRIDE_H):  # the rows that are complete
                if p >= begin_row and row < x_at.rows:
                    store_vectors(x, o, x_at.step, COLUMNS, col, x_at.vectors, acc, m)
                row = np.uint32(row + np.uint32(1))
                o = np.uint32(o + x_at.row)
            p = np.int32(p + np.int32(1))
        # -- rows below them add nothing --
        while p < end_row:
            shift(acc)
            for m in range(STRIDE_H):
                if p >= begin_row and row < x_at.rows:
                    store_vectors(x, o, x_at.step, COLUMNS, col, x_at.vectors, acc, m)
                row = np.uint32(row + np.uint32(1))
                o = np.uint32(o + x_at.row)
            p = np.int32(p + np.int32(1))
        item = np.uint32(item + num_parts * block_rows)


def launches(x, w, y, problem, format, tiling=None):
    """x = the gradient of the images, from filters w and the outputs' gradient y, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling = tiling or best_ring_tiling(problem)
    first_row = problem.top // problem.stride_h  # of outputs, after which rows of pixels are complete
    rows = (problem.H - 1 + problem.top) // problem.stride_h - first_row + 1
    (phase,) = phases(problem, "x")
    x_at, y_at = (make_image(problem, name, tiling, format, phase) for name in "xy")
    strip, grid, block = make_strips(problem, tiling, rows, problem.W, (problem.R - 1) // problem.stride_h)
    sizes = problem.R, problem.S, problem.stride_h, problem.stride_w
    first = (problem.left - problem.S + 1) // problem.stride_w  # column of outputs that adds to column 0 of pixels
    vectors_left = max(0, -first)
    offset = problem.left + vectors_left * problem.stride_w
    kernel = specialise_tiling(tiling, format, *sizes, offset)
    numbers = np.int32(problem.top), np.int32(first_row), np.uint32(vectors_left), bool(problem.flipped)
    arrays = as_elements(x, format, tiling.width), as_elements(w, format), as_elements(y, format, tiling.width)
    constants = kernel.py_func.__globals__
    shared_bytes = constants["TAPS_BYTE"] + constants["BLOCK_TAPS"] * 4
    return [Launch(kernel, grid, block, (*arrays, x_at, y_at, strip, *numbers), shared_bytes)]


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w, offset):
    """Return the kernel for a tiling, a format, filters of a size, their strides and `OFFSET`."""
    bounded = cuda.jit(launch_bounds=(THREADS, tiling.blocks))(pipelined_data.py_func)
    vectors = (tiling.columns - 1 + offset) // stride_w + 1
    sizes = {"R": R, "S": S, "TAPS": R * S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "COLUMNS": tiling.columns}
    sizes |= {"CHANNELS": tiling.width, "AHEAD": rows_ahead(tiling, vectors, LANES * tiling.width * R * S * 4)}
    return specialise(bounded, OFFSET=offset, **sizes, **vector_constants(format, tiling.width))
