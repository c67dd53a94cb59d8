"""The gradient of the filters, with three rows of outputs and pixels on their way to a ring in shared memory.

This is `s04_backward_filter` with the ring of `s05_pipelined`. After the last strip the sums of the block take the
ring's place.

Costs of T = R * S taps, for a strip per image, a stride of 1, whole tiles and no padding:

    VECTORS * H / (P * COLUMNS * CHANNELS)                              loads of x per element of y
    1 / CHANNELS                                                        loads of y per element of y
    (AHEAD + 1) * (VECTORS + COLUMNS) * WORDS * THREADS * 4             bytes of shared memory per block
    1 + 2 * ceil(log2(ROWS))                                            barriers per block

Limited as `s05_pipelined` is. Compute capability 8.0.

Parts: `fast_divide` of `labkit.parts.division`; `copy_row`, `sum_parts` and the like of this folder.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.depthwise import DEPTHWISE, RING_BENCHED, RING_EXAMPLES, RING_FIELDS
from labkit.conv.depthwise.partial_sums import add_over_block, sum_parts
from labkit.conv.depthwise.phases import phases
from labkit.conv.depthwise.rings import copy_row, read_row
from labkit.conv.depthwise.tiling import THREADS, Tiling, best_ring_tiling, make_image, make_strips, rows_ahead
from labkit.conv.depthwise.vectors import as_elements
from labkit.conv.problem import BackwardFilter
from labkit.formats import BF16, FP16
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

PROBLEM = BackwardFilter
FORMATS = BF16, FP16
EXAMPLES = RING_EXAMPLES
BENCHED = RING_BENCHED
SUPPORTED = {"result": ("w",), **DEPTHWISE}
SUPPORTED |= RING_FIELDS
TYPICAL_RATE = 13e6  # multiply-adds per microsecond, beside the time for memory
R, S, STRIDE_H, STRIDE_W = 3, 3, 1, 1
WORDS, COLUMNS = 2, 4  # of a vector, two channels in a word; of a tile
CHANNELS = 2 * WORDS  # of a thread
TAPS, ROWS = R * S, -(-R // STRIDE_H)  # of a filter; rows of outputs over a row of pixels
OUTPUTS = COLUMNS * CHANNELS
VECTORS = (COLUMNS - 1) * STRIDE_W + S  # of a row of pixels
VALUES = VECTORS * CHANNELS
AHEAD = 3  # rows of outputs that are on their way, with their new rows of pixels
IN_FLIGHT = AHEAD - 1  # of them, while a row is used
SLOT = VECTORS * STRIDE_H + COLUMNS  # vectors of a slot of the ring
LAST_SLOT = AHEAD * SLOT
RING = (LAST_SLOT + SLOT) * THREADS * WORDS


@cuda.jit(device=True)
def multiply(acc, x_reg, y_reg, e):
    """Add the products of row e of the new rows of pixels with rows of the gradient."""
    for k in range(ROWS):
        r = e + k * STRIDE_H
        if r < R:
            for s in range(S):
                for j in range(COLUMNS):
                    for v in range(CHANNELS):
                        pixel = x_reg[(j * STRIDE_W + s) * CHANNELS + v]
                        acc[r * S + s, v] += pixel * y_reg[k, j * CHANNELS + v]


@cuda.jit
def pipelined_filter(x, y, parts, x_at, y_at, strip, top, left, flipped):
    ring = ptx.shared_array(0, RING, np.uint32)
    sums = cuda.shared.array(0, np.float32)
    acc = cuda.local.array((TAPS, CHANNELS), np.float32)
    x_reg = cuda.local.array(VALUES, np.float32)
    y_new = cuda.local.array(OUTPUTS, np.float32)
    y_reg = cuda.local.array((ROWS, OUTPUTS), np.float32)
    lane, thread = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    t = np.uint32(thread * np.uint32(cuda.blockDim.x) + lane)
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
        p = np.int32(np.uint32(column - n * strip.strips.value) * strip.strip_rows)
        end_row = np.int32(min(np.int32(y_at.rows), np.int32(p + strip.strip_rows)))
        first = np.uint32(tile * np.uint32(COLUMNS * STRIDE_W) - left)  # vector of pixels
        q = np.uint32(tile * np.uint32(COLUMNS))  # vector of outputs
        row = np.uint32(p * np.int32(STRIDE_H) - top)
        i = np.uint32(x_at.begin + n * x_at.image + (lane0 + lane) * x_at.lane + row * x_at.row + first * x_at.step)
        o = np.uint32(
            y_at.begin + n * y_at.image + (lane0 + lane) * y_at.lane + np.uint32(p) * y_at.row + q * y_at.step
        )
        for k in range(ROWS):
            for j in range(OUTPUTS):
                y_reg[k, j] = np.float32(0)
        copy_p, copy_slot, slot = p, np.uint32(0), np.uint32(0)
        copy_end = np.int32(end_row + np.int32(ROWS - 1))
        for _ in range(AHEAD):
            if copy_p < copy_end:
                for e in range(STRIDE_H):
                    end = x_at.vectors if row < x_at.rows else np.uint32(0)
                    copy_row(ring, np.uint32(copy_slot + e * VECTORS), t, x, i, x_at.step, VECTORS, first, end)
                    row, i = np.uint32(row + np.uint32(1)), np.uint32(i + x_at.row)
                end = y_at.vectors if copy_p < end_row else np.uint32(0)
                copy_row(ring, np.uint32(copy_slot + STRIDE_H * VECTORS), t, y, o, y_at.step, COLUMNS, q, end)
            ptx.cp_async_commit()
            copy_p, o = np.int32(copy_p + np.int32(1)), np.uint32(o + y_at.row)
            copy_slot = np.uint32(copy_slot + np.uint32(SLOT))

        # -- slide --
        while p < copy_end:
            ptx.cp_async_wait(IN_FLIGHT)
            for k in range(ROWS - 1, 0, -1):
                for j in range(OUTPUTS):
                    y_reg[k, j] = y_reg[k - 1, j]
            read_row(ring, np.uint32(slot + STRIDE_H * VECTORS), t, COLUMNS, y_new)
            for j in range(OUTPUTS):
                y_reg[0, j] = y_new[j]
            for e in range(STRIDE_H):
                if np.uint32(p * np.int32(STRIDE_H) + np.int32(e) - top) < x_at.rows:
                    read_row(ring, np.uint32(slot + e * VECTORS), t, VECTORS, x_reg)
                    multiply(acc, x_reg, y_reg, e)
            if copy_p < copy_end:
                for e in range(STRIDE_H):
                    end = x_at.vectors if row < x_at.rows else np.uint32(0)
                    copy_row(ring, np.uint32(copy_slot + e * VECTORS), t, x, i, x_at.step, VECTORS, first, end)
                    row, i = np.uint32(row + np.uint32(1)), np.uint32(i + x_at.row)
                end = y_at.vectors if copy_p < end_row else np.uint32(0)
                copy_row(ring, np.uint32(copy_slot + STRIDE_H * VECTORS), t, y, o, y_at.step, COLUMNS, q, end)
            ptx.cp_async_commit()
            copy_p, o = np.int32(copy_p + np.int32(1)), np.uint32(o + y_at.row)
            copy_slot = np.uint32(copy_slot + np.uint32(SLOT)) if copy_slot < LAST_SLOT else np.uint32(0)
            slot = np.uint32(slot + np.uint32(SLOT)) if slot < LAST_SLOT else np.uint32(0)
            p = np.int32(p + np.int32(1))
        item = np.uint32(item + num_parts * block_rows)

    # -- sum of the block, in pairs of threads; sums lie where the ring was --
    cuda.syncthreads()
    add_over_block(acc, sums)
    if thread == 0 and lane_exists:
        for tap in range(TAPS):
            for v in range(CHANNELS):
                turned = np.uint32(TAPS - 1 - tap if flipped else tap)
                parts[part, turned, np.uint32((lane0 + lane) * np.uint32(CHANNELS) + np.uint32(v))] = acc[tap, v]


def launches(x, w, y, problem, format, workspace, tiling=None):
    """w = the gradient of the filters, from images x and the outputs' gradient y, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    tiling = tiling or best_ring_tiling(problem)
    (phase,) = phases(problem, "y")
    x_at, y_at = (make_image(problem, name, tiling, format, phase) for name in "xy")
    halo = -(-problem.R // problem.stride_h) - 1
    strip, grid, block = make_strips(problem, tiling, problem.P, problem.Q, halo, waves=1)
    sizes = problem.R, problem.S, problem.stride_h, problem.stride_w
    kernel = specialise_tiling(tiling, format, *sizes)
    numbers = np.int32(problem.top), np.uint32(problem.left), bool(problem.flipped)
    taps = problem.R * problem.S
    parts = workspace.array("parts", (grid // int(strip.chunks.value), taps, problem.C), np.float32)
    arrays = as_elements(x, format, tiling.width), as_elements(y, format, tiling.width), parts
    constants = kernel.py_func.__globals__
    ring_bytes = constants["RING"] * 4
    shared_bytes = max(ring_bytes, -(-block[1] // 2) * block[0] * tiling.channels * taps * 4)
    first = Launch(kernel, grid, block, (*arrays, x_at, y_at, strip, *numbers), shared_bytes)
    return [first, sum_parts(parts, as_elements(w, format), format)]


@cache
def specialise_tiling(tiling: Tiling, format, R, S, stride_h, stride_w):
    """Return the kernel for a tiling, a format, filters of a size and their strides."""
    bounded = cuda.jit(launch_bounds=(THREADS, tiling.blocks))(pipelined_filter.py_func)
    vectors = ((tiling.columns - 1) * stride_w + S) * stride_h + tiling.columns
    sizes = {"R": R, "S": S, "STRIDE_H": stride_h, "STRIDE_W": stride_w, "COLUMNS": tiling.columns}
    sizes |= {"WORDS": tiling.width // 2, "AHEAD": rows_ahead(tiling, vectors)}
    sizes |= {"CHANNELS": tiling.width, "TAPS": R * S}
    return specialise(bounded, FORMAT=format.number, **sizes)
