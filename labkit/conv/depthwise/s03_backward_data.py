"""The gradient of the images: a thread slides over rows of the outputs' gradient, and each adds to R rows of pixels.

As in `s02_strips`, with images and outputs exchanged: a tile has columns of pixels, and sums are those of R rows of
pixels under a row of outputs. With a stride of 2, two rows are complete after each row of outputs, and a column of
pixels is under every second tap: the compiler drops the others, since strides are constants.

Costs of T = R * S taps in NHWC, for a strip per image, a stride of 1, whole tiles and no padding:

    (VECTORS * W / COLUMNS - 2 * (S - 1)) * P / (H * W * CHANNELS)      loads of y per element of x
    LANES * CHANNELS * T * 4                                            bytes of shared memory per block
    1                                                                   barriers per block

Limited as `s02_strips` is; `s06_pipelined_data` has three rows on their way.

Parts: `fast_divide` of `labkit.parts.division`; `load_taps`, `load_vectors` and the like of this folder.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.conv.depthwise import DEPTHWISE
from labkit.conv.depthwise.phases import Phase, phases
from labkit.conv.depthwise.taps import load_taps
from labkit.conv.depthwise.tiling import Tiling, best_tiling, make_image, make_strips
from labkit.conv.depthwise.vectors import (
    as_elements,
    load_vectors,
    store_vectors,
    unpack_vectors,
    vector_constants,
)
from labkit.conv.problem import BackwardData
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

PROBLEM = BackwardData
SUPPORTED = {"result": ("x",), **DEPTHWISE}
TYPICAL_RATE = 10e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WIDTH, UNIT, COLUMNS = 4, 1, 4  # numbers of a vector, those of them that are columns, columns of pixels of a tile
OFFSET = 2  # of a tile's first pixel from the output under its tap 0, the first loaded one being at 0, in pixels
CHANNELS = WIDTH // UNIT  # of a thread
TAPS, PENDING = R * S, max(R, STRIDE_H)  # rows of pixels over a row of outputs
HALF = R // 2
SUMS = COLUMNS * CHANNELS
VECTORS, X_VECTORS = 6, COLUMNS // UNIT  # of a row of outputs and of pixels
ELEMENT, WORDS = np.float32, 4
RAW, VALUES = VECTORS * WORDS, VECTORS * WIDTH


@cuda.jit(device=True)
def shift(acc):
    """Make the sums of a row those of the row STRIDE_H before."""
    for r in range(PENDING):
        for j in range(SUMS):
            acc[r, j] = acc[r + STRIDE_H, j] if r + STRIDE_H < PENDING else np.float32(0)


@cuda.jit(device=True)
def multiply(acc, y_reg, w_reg, begin, end):
    """Add the products of a row of the gradient to rows of sums."""
    for r in range(begin, end):
        for s in range(S):
            for j in range(COLUMNS):
                if (j + OFFSET - s) % STRIDE_W == 0:
                    for v in range(CHANNELS):
                        gradient = y_reg[(j + OFFSET - s) // STRIDE_W * CHANNELS + v]
                        acc[r, j * CHANNELS + v] += gradient * w_reg[r * S + s, v]


@cuda.jit
def backward_data(x, w, y, x_at, y_at, strip, top, first_row, vectors_left, flipped):
    taps = cuda.shared.array(0, np.float32)
    w_reg = cuda.local.array((TAPS, CHANNELS), np.float32)
    acc = cuda.local.array((PENDING, SUMS), np.float32)
    raw = cuda.local.array(RAW, ELEMENT)
    y_reg = cuda.local.array(VALUES, np.float32)
    lane, thread = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
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
        first = np.uint32(tile * np.uint32(COLUMNS // STRIDE_W // UNIT) - vectors_left)  # vector of outputs
        col = np.uint32(tile * np.uint32(COLUMNS // UNIT))  # vector of pixels
        p = np.int32(max(np.int32(begin_row - np.int32((R - 1) // STRIDE_H)), np.int32(0)))
        row = np.uint32(p * np.int32(STRIDE_H) - top)  # of pixels
        i = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + first * y_at.step
        )
        o = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + col * x_at.step)
        for r in range(PENDING):
            for j in range(SUMS):
                acc[r, j] = np.float32(0)
        load_vectors(y, i, y_at.step, VECTORS, first, y_at.vectors if np.uint32(p) < y_at.rows else np.uint32(0), raw)

        # -- slide over the outputs --
        while p < min(end_row, np.int32(y_at.rows)):
            shift(acc)
            unpack_vectors(raw, RAW, y_reg)
            i = np.uint32(i + y_at.row)
            is_inside = np.uint32(p + np.int32(1)) < y_at.rows
            load_vectors(y, i, y_at.step, VECTORS, first, y_at.vectors if is_inside else np.uint32(0), raw)
            multiply(acc, y_reg, w_reg, 0, HALF)  # the compiler does not unroll 7 x 7 taps at once
            multiply(acc, y_reg, w_reg, HALF, R)
            for t in range(STRIDE_H):  # the rows that are complete
                if p >= begin_row and row < x_at.rows:
                    store_vectors(x, o, x_at.step, X_VECTORS, col, x_at.vectors, acc, t)
                row = np.uint32(row + np.uint32(1))
                o = np.uint32(o + x_at.row)
            p = np.int32(p + np.int32(1))
        # -- rows below them add nothing --
        while p < end_row:
            shift(acc)
            for t in range(STRIDE_H):
                if p >= begin_row and row < x_at.rows:
                    store_vectors(x, o, x_at.step, X_VECTORS, col, x_at.vectors, acc, t)
                row = np.uint32(row + np.uint32(1))
                o = np.uint32(o + x_at.row)
            p = np.int32(p + np.int32(1))
        item = np.uint32(item + num_parts * block_rows)


def launches(x, w, y, problem, format, tiling=None):
    """x = the gradient of the images, from filters w and the outputs' gradient y: a launch per phase.

    It is computed by the given tiling or the best.
    """
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling = tiling or best_tiling(problem)
    arrays = as_elements(x, format, tiling.width), as_elements(w, format), as_elements(y, format, tiling.width)
    return [launch_phase(arrays, problem, format, tiling, phase) for phase in phases(problem, "x")]


def launch_phase(arrays, problem, format, tiling: Tiling, phase: Phase) -> Launch:
    """Return the launch for a convolution without dilation, which is the whole one or a part of it."""
    rows, columns, stride_h, stride_w = phase.rows, phase.columns, problem.stride_h, problem.stride_w
    first_row = rows.zeros // stride_h  # of outputs, after which rows of pixels are complete
    count = (rows.pixels - 1 + rows.zeros) // stride_h - first_row + 1
    x_at, y_at = (make_image(problem, name, tiling, format, phase) for name in "xy")
    strip, grid, block = make_strips(problem, tiling, count, columns.pixels, (problem.R - 1) // stride_h)
    first = (columns.zeros - problem.S + 1) // stride_w  # column of outputs that adds to column 0 of pixels
    vectors_left = -(-max(0, -first) // tiling.unit)
    offset = columns.zeros + vectors_left * tiling.unit * stride_w
    kernel = specialise_tiling(tiling, format, problem.R, problem.S, stride_h, stride_w, offset)
    numbers = np.int32(rows.zeros), np.int32(first_row), np.uint32(vectors_left), bool(problem.flipped)
    shared_bytes = block[0] * tiling.channels * problem.R * problem.S * 4
    return Launch(kernel, grid, block, (*arrays, x_at, y_at, strip, *numbers), shared_bytes)


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w, offset):
    """Return the kernel for a tiling, a format, filters of a size, their strides and `OFFSET`."""
    bounded = cuda.jit(launch_bounds=(256, tiling.blocks))(backward_data.py_func)
    sizes = {"R": R, "S": S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "OFFSET": offset}
    vectors = -(-((tiling.columns - 1 + offset) // stride_w + 1) // tiling.unit)
    shape = {"UNIT": tiling.unit, "COLUMNS": tiling.columns, "VECTORS": vectors}
    shape |= {"CHANNELS": tiling.channels, "TAPS": R * S}
    return specialise(bounded, **sizes, **shape, **vector_constants(format, tiling.width))
