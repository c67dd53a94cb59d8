"""A warp per row: its reductions need no barrier, and warps do not wait for each other.

A row of 256 values is two 16-byte vectors per lane. A warp processes two such rows at once, to have more loads in
flight, and loads weights and biases once for both.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       warps: read, written
    2       passes in all

Limited by memory, and nearly by instructions if values have 2 bytes. A lane keeps up to 32 values, so that rows have at
most 1024. `s04_overlapped` is for wide rows.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store

BENCHED = sizes_of_widths(*NARROW, ODD[0], *WIDTHS[:2])  # the sizes that this step accepts
COMPARED = sizes_of_widths(WIDTHS[1])[0]  # the timed size by which steps are compared
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
VECTORS = 4  # vectors per lane and row
ROWS = 2  # per warp
SLOTS = ROWS * VECTORS
MAX_VALUES = 32  # per lane
WARP, WARPS = 32, 8  # threads per warp, and warps per block


@cuda.jit
def warps(x, weight, bias, y, mean, rstd, eps):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    scales = cuda.local.array(ROWS, np.float32)
    shifts = cuda.local.array(ROWS, np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, columns = np.uint32(cuda.threadIdx.x % WARP), np.uint32(weight.shape[0])
    last, num_values = np.uint32(x.shape[0] - 1), np.float32(columns)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    if start <= last:
        for r in range(ROWS):  # if their number is odd, the last row twice
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(x, min(np.uint32(start + r), last), i, x_reg[r * VECTORS + k])
        for r in range(ROWS):
            row_sum = deviations = squares = average = correction = np.float32(0)
            if CENTRED:
                for k in range(VECTORS):
                    if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                        for e in range(WIDTH):
                            row_sum += x_reg[r * VECTORS + k, e]
                average = warp_all_sum(row_sum) * inv_columns
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] -= average
                        deviations += x_reg[r * VECTORS + k, e]
                        squares += x_reg[r * VECTORS + k, e] * x_reg[r * VECTORS + k, e]
            squares = warp_all_sum(squares)
            if CENTRED:
                correction = warp_all_sum(deviations) * inv_columns
                squares -= correction * correction * num_values
                squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
            scales[r] = np.float32(1) / sqrt(squares * inv_columns + eps)
            shifts[r] = -correction * scales[r]
            if lane == 0:
                row = min(np.uint32(start + r), last)
                rstd[row] = scales[r]
                if CENTRED:
                    mean[row] = average + correction
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                load_float32(weight, i, weight_bias[0])
                if CENTRED:
                    load_float32(bias, i, weight_bias[1])
                for r in range(ROWS):
                    for e in range(WIDTH):
                        value = (x_reg[r * VECTORS + k, e] * scales[r] + shifts[r]) * weight_bias[0, e]
                        if CENTRED:
                            value += weight_bias[1, e]
                        x_reg[r * VECTORS + k, e] = value
                    store(y, min(np.uint32(start + r), last), i, x_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per lane and row, and rows per warp."""
    vectors = -(-columns // (width * WARP))
    if columns > WARP * MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MAX_VALUES} in registers")
    return vectors, 2 if 2 * vectors * width <= MAX_VALUES else 1


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    vectors, rows = geometry(problem.columns, width)
    constants = {"VECTORS": vectors, "ROWS": rows, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(warps, format.dtype, width, bounds=WARP * WARPS, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, (*arrays, np.float32(problem.eps)))]
