"""A thread slides over a strip of rows: taps and sums stay in registers, and a pixel is loaded once per strip.

A thread has a tile of columns, and goes down the rows of its strip. Each row of pixels adds to the R rows of outputs
above it, whose sums the thread keeps. After each row one of them is complete and is stored, and a new one begins.
Pixels are loaded as vectors: of channels in NHWC, where a thread has several channels, and of columns in NCHW. The next
row is on its way while the thread multiplies.

Neighbouring threads have neighbouring channels, or tiles of one row. A block loads the taps of its channels into shared
memory, since the threads of a warp would read them far apart.

Costs of T = R * S taps in NHWC, for a strip per image, a stride of 1, whole tiles and no padding:

    VECTORS * H / (P * COLUMNS * CHANNELS)          loads of x per element of y
    LANES * CHANNELS * T * 4                        bytes of shared memory per block
    1                                               barriers per block

With dilation, outputs and pixels that many apart are a convolution without it, and have a launch of their own
(`phases`).

Limited by the pixels that are on their way, one row per thread, for 3 x 3 taps; by multiply-adds in float32 for 7 x 7.
`s05_pipelined` has three rows on their way.

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
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

SUPPORTED = {"result": ("y",), **DEPTHWISE}
TYPICAL_RATE = 10e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WIDTH, UNIT, COLUMNS = 4, 1, 4  # numbers of a vector, those of them that are columns, columns of outputs of a tile
OFFSET = 0  # columns loaded before those under the taps, for aligned vectors
CHANNELS = WIDTH // UNIT  # of a thread
TAPS, PENDING = R * S, -(-R // STRIDE_H)  # rows of outputs under a row of pixels
HALF = PENDING // 2
SUMS = COLUMNS * CHANNELS
VECTORS, Y_VECTORS = 6, COLUMNS // UNIT  # of a row of pixels and of outputs
ELEMENT, WORDS = np.float32, 4
RAW, VALUES = VECTORS * WORDS, VECTORS * WIDTH


@cuda.jit(device=True)
def shift(acc):
    """Make the sums of a row those of the row before."""
    for k in range(PENDING):
        for j in range(SUMS):
            acc[k, j] = acc[k + 1, j] if k + 1 < PENDING else np.float32(0)


@cuda.jit(device=True)
def multiply(acc, x_reg, w_reg, e, begin, end):
    """Add the products of row e of the new rows of pixels to rows of sums."""
    for k in range(begin, end):
        r = R - STRIDE_H + e - k * STRIDE_H
        if r >= 0:
            for s in range(S):
                for j in range(COLUMNS):
                    for v in range(CHANNELS):
                        pixel = x_reg[(OFFSET + j * STRIDE_W + s) * CHANNELS + v]
                        acc[k, j * CHANNELS + v] += pixel * w_reg[r * S + s, v]


@cuda.jit
def strips(x, w, y, x_at, y_at, strip, top, left, inside_begin, inside_end, flipped):
    taps = cuda.shared.array(0, np.float32)
    w_reg = cuda.local.array((TAPS, CHANNELS), np.float32)
    acc = cuda.local.array((PENDING, SUMS), np.float32)
    raw = cuda.local.array(RAW, ELEMENT)
    x_reg = cuda.local.array(VALUES, np.float32)
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
        begin_row = np.int32(np.uint32(column - n * strip.strips.value) * strip.strip_rows)
        end_row = np.int32(min(np.int32(y_at.rows), np.int32(begin_row + strip.strip_rows)))
        first = np.uint32(tile * np.uint32(COLUMNS * STRIDE_W // UNIT) - left)  # vector of pixels
        q = np.uint32(tile * np.uint32(COLUMNS // UNIT))  # vector of outputs
        p = np.int32(max(np.int32(begin_row - np.int32(PENDING - 1)), inside_begin))
        row = np.uint32(p * np.int32(STRIDE_H) + np.int32(R - STRIDE_H) - top)
        i = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + first * x_at.step)
        o = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + q * y_at.step
        )
        for k in range(PENDING):
            for j in range(SUMS):
                acc[k, j] = np.float32(0)
        load_vectors(x, i, x_at.step, VECTORS, first, x_at.vectors if row < x_at.rows else np.uint32(0), raw)

        # -- slide over the image --
        while p < min(end_row, inside_end):
            shift(acc)
            for e in range(STRIDE_H):
                unpack_vectors(raw, RAW, x_reg)
                row = np.uint32(row + np.uint32(1))
                i = np.uint32(i + x_at.row)
                load_vectors(x, i, x_at.step, VECTORS, first, x_at.vectors if row < x_at.rows else np.uint32(0), raw)
                multiply(acc, x_reg, w_reg, e, 0, HALF)  # the compiler does not unroll 7 x 7 taps at once
                multiply(acc, x_reg, w_reg, e, HALF, PENDING)
            if p >= begin_row:  # the row is complete
                store_vectors(y, o, y_at.step, Y_VECTORS, q, y_at.vectors, acc, 0)
            o = np.uint32(o + y_at.row)
            p = np.int32(p + np.int32(1))
        # -- rows below it add nothing --
        while p < end_row:
            shift(acc)
            if p >= begin_row:
                store_vectors(y, o, y_at.step, Y_VECTORS, q, y_at.vectors, acc, 0)
            o = np.uint32(o + y_at.row)
            p = np.int32(p + np.int32(1))
        item = np.uint32(item + num_parts * block_rows)


def launches(x, w, y, problem, format, tiling=None):
    """y = x * w, each channel with its own filter, by the given tiling or the best: a launch per phase."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling = tiling or best_tiling(problem)
    arrays = as_elements(x, format, tiling.width), as_elements(w, format), as_elements(y, format, tiling.width)
    return [launch_phase(arrays, problem, format, tiling, phase) for phase in phases(problem, "y")]


def launch_phase(arrays, problem, format, tiling: Tiling, phase: Phase) -> Launch:
    """Return the launch of a convolution without dilation, which is the whole one or a part of it."""
    R, stride_h, rows, columns = problem.R, problem.stride_h, phase.rows, phase.columns
    vectors_left = -(-columns.zeros // tiling.unit)
    x_at, y_at = (make_image(problem, name, tiling, format, phase) for name in "xy")
    strip, grid, block = make_strips(problem, tiling, rows.outputs, columns.outputs, -(-R // stride_h) - 1)
    sizes = R, problem.S, stride_h, problem.stride_w
    kernel = specialise_tiling(tiling, format, *sizes, vectors_left * tiling.unit - columns.zeros)
    below = R - rows.zeros  # rows of pixels from the first under an output to the first below its last tap
    inside = -((below - 1) // stride_h), -((below - stride_h - rows.pixels) // stride_h)
    numbers = np.int32(rows.zeros), np.uint32(vectors_left), *map(np.int32, inside), bool(problem.flipped)
    shared_bytes = block[0] * tiling.channels * R * problem.S * 4
    return Launch(kernel, grid, block, (*arrays, x_at, y_at, strip, *numbers), shared_bytes)


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w, offset):
    """Return the kernel for a tiling, a format, filters of a size, their strides and `OFFSET`."""
    bounded = cuda.jit(launch_bounds=(256, tiling.blocks))(strips.py_func)
    sizes = {"R": R, "S": S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "OFFSET": offset}
    vectors = -(-(offset + (tiling.columns - 1) * stride_w + S) // tiling.unit)
    shape = {"UNIT": tiling.unit, "COLUMNS": tiling.columns, "VECTORS": vectors}
    shape |= {"CHANNELS": tiling.channels, "TAPS": R * S}
    return specialise(bounded, **sizes, **shape, **vector_constants(format, tiling.width))
