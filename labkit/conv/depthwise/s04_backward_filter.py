"""The gradient of the filters: a thread sums up all taps of its channels, over many strips.

A row of pixels is multiplied with the R rows of the outputs' gradient that it is under, which the thread keeps in
registers with the sums of all taps. Threads of a block with the same channels add their sums in pairs. A second launch
adds the sums of the blocks in a fixed order: every run gives the same bits.

Costs of T = R * S taps in NHWC, for a strip per image, a stride of 1, whole tiles and no padding:

    VECTORS * H / (P * COLUMNS * CHANNELS)          loads of x per element of y
    1 / CHANNELS                                    loads of y per element of y
    ceil(ROWS / 2) * LANES * CHANNELS * T * 4       bytes of shared memory per block
    2 * ceil(log2(ROWS))                            barriers per block

Limited as `s02_strips` is; `s07_pipelined_filter` has three rows on their way.

Parts: `fast_divide` of `labkit.parts.division`; `load_vectors` and the like of this folder.
"""

from functools import cache
from itertools import accumulate

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import slice_rows
from labkit.conv.depthwise import DEPTHWISE
from labkit.conv.depthwise.partial_sums import add_over_block, sum_parts
from labkit.conv.depthwise.phases import phases
from labkit.conv.depthwise.tiling import Tiling, best_filter_tiling, make_image, make_strips
from labkit.conv.depthwise.vectors import (
    as_elements,
    load_vectors,
    unpack_vectors,
    vector_constants,
)
from labkit.conv.problem import BackwardFilter
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

PROBLEM = BackwardFilter
SUPPORTED = {"result": ("w",), **DEPTHWISE}
TYPICAL_RATE = 10e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WIDTH, UNIT, COLUMNS = 4, 1, 4  # numbers of a vector, those of them that are columns, columns of outputs of a tile
OFFSET = 0  # columns loaded before those under the taps, for aligned vectors
CHANNELS = WIDTH // UNIT  # of a thread
TAPS, ROWS = R * S, -(-R // STRIDE_H)  # of a filter; rows of outputs over a row of pixels
OUTPUTS = COLUMNS * CHANNELS
VECTORS, Y_VECTORS = 6, COLUMNS // UNIT  # of a row of pixels and of outputs
ELEMENT, WORDS = np.float32, 4
RAW, VALUES, Y_RAW = VECTORS * WORDS, VECTORS * WIDTH, Y_VECTORS * WORDS


@cuda.jit(device=True)
def multiply(acc, x_reg, y_reg, e, k):
    """Add the products of row e of the new rows of pixels with row k of the gradient."""
    r = e + k * STRIDE_H
    if r < R:
        for s in range(S):
            for j in range(COLUMNS):
                for v in range(CHANNELS):
                    pixel = x_reg[(OFFSET + j * STRIDE_W + s) * CHANNELS + v]
                    acc[r * S + s, v] += pixel * y_reg[k, j * CHANNELS + v]


@cuda.jit
def backward_filter(x, y, parts, x_at, y_at, strip, top, left, flipped):
    sums = cuda.shared.array(0, np.float32)
    acc = cuda.local.array((TAPS, CHANNELS), np.float32)
    x_raw = cuda.local.array(RAW, ELEMENT)
    x_reg = cuda.local.array(VALUES, np.float32)
    y_raw = cuda.local.array(Y_RAW, ELEMENT)
    y_new = cuda.local.array(OUTPUTS, np.float32)
    y_reg = cuda.local.array((ROWS, OUTPUTS), np.float32)
    lane, thread = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    lanes, block_rows = np.uint32(cuda.blockDim.x), np.uint32(cuda.blockDim.y)
    part = fast_divide(np.uint32(cuda.blockIdx.x), strip.chunks)
    lane0 = np.uint32((cuda.blockIdx.x - part * strip.chunks.value) * lanes)  # of the block
    num_parts = fast_divide(np.uint32(cuda.gridDim.x), strip.chunks)

    lane_exists = np.uint32((lane0 + lane) * np.uint32(CHANNELS)) < strip.channels
    for tap in range(TAPS):
        for v in range(CHANNELS):
            acc[tap, v] = np.float32(0)

    item = np.uint32(part * block_rows + thread)
    while lane_exists and item < strip.items:
        # -- locate the strip --
        column = fast_divide(item, strip.tiles)
        tile = np.uint32(item - column * strip.tiles.value)
        n = fast_divide(column, strip.strips)
        begin_row = np.int32(np.uint32(column - n * strip.strips.value) * strip.strip_rows)
        end_row = np.int32(min(np.int32(y_at.rows), np.int32(begin_row + strip.strip_rows)))
        num_rows, p = np.uint32(end_row - begin_row), begin_row
        first = np.uint32(tile * np.uint32(COLUMNS * STRIDE_W // UNIT) - left)  # vector of pixels
        q = np.uint32(tile * np.uint32(COLUMNS // UNIT))  # vector of outputs
        row = np.uint32(p * np.int32(STRIDE_H) - top)
        i = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + first * x_at.step)
        o = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + q * y_at.step
        )
        for k in range(ROWS):
            for j in range(OUTPUTS):
                y_reg[k, j] = np.float32(0)
        load_vectors(x, i, x_at.step, VECTORS, first, x_at.vectors if row < x_at.rows else np.uint32(0), x_raw)
        load_vectors(y, o, y_at.step, Y_VECTORS, q, y_at.vectors, y_raw)

        # -- slide --
        while p < np.int32(end_row + np.int32(ROWS - 1)):
            for k in range(ROWS - 1, 0, -1):
                for j in range(OUTPUTS):
                    y_reg[k, j] = y_reg[k - 1, j]
            unpack_vectors(y_raw, Y_RAW, y_new)
            for j in range(OUTPUTS):
                y_reg[0, j] = y_new[j]
            last = np.int32(p - begin_row)  # row of the strip that is new
            p = np.int32(p + np.int32(1))
            o = np.uint32(o + y_at.row)
            load_vectors(y, o, y_at.step, Y_VECTORS, q, y_at.vectors if p < end_row else np.uint32(0), y_raw)
            for e in range(STRIDE_H):
                is_inside = row < x_at.rows
                unpack_vectors(x_raw, RAW, x_reg)
                row = np.uint32(row + np.uint32(1))
                i = np.uint32(i + x_at.row)
                load_vectors(x, i, x_at.step, VECTORS, first, x_at.vectors if row < x_at.rows else np.uint32(0), x_raw)
                if is_inside:
                    if R <= 3 or (last >= ROWS - 1 and np.uint32(last) < num_rows):
                        for k in range(ROWS):
                            multiply(acc, x_reg, y_reg, e, k)
                    else:
                        for k in range(ROWS):
                            if np.uint32(last - np.int32(k)) < num_rows:  # of the strip, else zeros
                                multiply(acc, x_reg, y_reg, e, k)
        item = np.uint32(item + num_parts * block_rows)

    # -- sum of the block, in pairs of threads --
    add_over_block(acc, sums)
    if thread == 0 and lane_exists:
        for tap in range(TAPS):
            for v in range(CHANNELS):
                turned = np.uint32(TAPS - 1 - tap if flipped else tap)
                parts[part, turned, np.uint32((lane0 + lane) * np.uint32(CHANNELS) + np.uint32(v))] = acc[tap, v]


def launches(x, w, y, problem, format, workspace, tiling=None):
    """w = the gradient of the filters, from images x and the outputs' gradient y: a launch per phase, and a sum.

    It is computed by the given tiling or the best.
    """
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling, taps = tiling or best_filter_tiling(problem), problem.R * problem.S
    halo = -(-problem.R // problem.stride_h) - 1  # rows of zeros, whose products are left out for larger filters
    divided = [
        (phase, *make_strips(problem, tiling, phase.rows.outputs, phase.columns.outputs, halo // 2, waves=1))
        for phase in phases(problem, "y")
    ]
    counts = [grid // int(strip.chunks.value) for _, strip, grid, _ in divided]
    parts = workspace.array("parts", (sum(counts), taps, problem.C), np.float32)
    arrays = as_elements(x, format, tiling.width), as_elements(y, format, tiling.width)
    sequence = []
    for (phase, strip, grid, block), end in zip(divided, accumulate(counts)):
        own_parts = slice_rows(parts, end - grid // int(strip.chunks.value), grid // int(strip.chunks.value))
        vectors_left = -(-phase.columns.zeros // tiling.unit)
        offset = vectors_left * tiling.unit - phase.columns.zeros
        kernel = specialise_tiling(tiling, format, problem.R, problem.S, problem.stride_h, problem.stride_w, offset)
        at = (make_image(problem, name, tiling, format, phase) for name in "xy")
        numbers = np.int32(phase.rows.zeros), np.uint32(vectors_left), bool(problem.flipped)
        shared_bytes = -(-block[1] // 2) * block[0] * tiling.channels * taps * 4
        sequence.append(Launch(kernel, grid, block, (*arrays, own_parts, *at, strip, *numbers), shared_bytes))
    return [*sequence, sum_parts(parts, as_elements(w, format), format)]


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w, offset):
    """Return the kernel for a tiling, a format, filters of a size, their strides and `OFFSET`."""
    bounded = cuda.jit(launch_bounds=(256, tiling.blocks))(backward_filter.py_func)
    sizes = {"R": R, "S": S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "OFFSET": offset}
    vectors = -(-(offset + (tiling.columns - 1) * stride_w + S) // tiling.unit)
    shape = {"UNIT": tiling.unit, "COLUMNS": tiling.columns, "VECTORS": vectors}
    shape |= {"CHANNELS": tiling.channels, "TAPS": R * S}
    return specialise(bounded, **sizes, **shape, **vector_constants(format, tiling.width))
