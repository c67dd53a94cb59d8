"""A few lanes share a short row, so that a warp has several rows and none of its lanes is idle.

A row of 16 bfloat16 is two vectors of 16 bytes: two lanes have one each, and a warp reads 16 rows, 512 neighbouring
bytes, by one load. Sums take one exchange between lanes where those of a warp take five. A lane has the same columns of
all its rows, and loads their weights and biases once.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       lanes: read, written
    2       passes in all

Limited by memory. A lane keeps up to 32 values, so that rows have at most 512. From 256 values on `s03_warps`, which
has more lanes for a row, needs fewer registers.

Parts: `group_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import EXAMPLES, NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.parts.sums import group_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store

# the sizes that this step accepts, and more rows
EXAMPLES = (*(sizes for sizes in EXAMPLES if sizes[1] <= 512), (70, 16, "layer"), (35, 27, "rms"))
BENCHED = sizes_of_widths(*NARROW, ODD[0], WIDTHS[0])  # timed sizes
COMPARED = BENCHED[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 512, 64, "layer"  # simulated for the roofline
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
LANES, MAX_LANES = 16, 16  # per row, a power of two
VECTORS = 2  # per lane and row
ROWS, MAX_ROWS = 2, 2  # per lane
SLOTS = ROWS * VECTORS
MAX_VALUES = 32  # per lane, of all its rows
WARP, WARPS = 32, 8  # threads per warp, and warps per block


@cuda.jit
def lanes(x, weight, bias, y, mean, rstd, eps):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    weight_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    bias_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    t, rows, columns = np.uint32(cuda.threadIdx.x), np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    start = np.uint32((cuda.blockIdx.x * WARPS + t // WARP) * (ROWS * WARP // LANES))
    first, lane, num_values = np.uint32(start + t % WARP // LANES), np.uint32(t % LANES), np.float32(columns)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    if start < rows:
        # -- load the rows --
        for r in range(ROWS):
            row = np.uint32(first + r * (WARP // LANES))
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * LANES + lane))
                for e in range(WIDTH):
                    x_reg[r * VECTORS + k, e] = np.float32(0)
                if row < rows and i < columns:
                    load(x, row, i, x_reg[r * VECTORS + k])
        # -- load the weights --
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * LANES + lane))
            if i < columns:
                load_float32(weight, i, weight_reg[k])
                if CENTRED:
                    load_float32(bias, i, bias_reg[k])
        # -- sums of the rows --
        for r in range(ROWS):
            row = np.uint32(first + r * (WARP // LANES))
            row_sum = deviations = squares = average = correction = np.float32(0)
            if CENTRED:
                for k in range(VECTORS):
                    for e in range(WIDTH):
                        row_sum += x_reg[r * VECTORS + k, e]
                average = group_all_sum(row_sum, LANES) * inv_columns
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * LANES + lane)) < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] -= average
                        deviations += x_reg[r * VECTORS + k, e]
                        squares += x_reg[r * VECTORS + k, e] * x_reg[r * VECTORS + k, e]
            squares = group_all_sum(squares, LANES)
            if CENTRED:
                correction = group_all_sum(deviations, LANES) * inv_columns
                squares -= correction * correction * num_values
                squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
            scale = cuda.libdevice.rsqrtf(
                squares * inv_columns + eps
            )  # a root and a division take some fifty instructions
            shift = -correction * scale
            if row < rows:
                if lane == 0:
                    rstd[row] = scale
                    if CENTRED:
                        mean[row] = average + correction
                # -- write y --
                for k in range(VECTORS):
                    i = np.uint32(WIDTH * (k * LANES + lane))
                    if i < columns:
                        for e in range(WIDTH):
                            value = (x_reg[r * VECTORS + k, e] * scale + shift) * weight_reg[k, e]
                            if CENTRED:
                                value += bias_reg[k, e]
                            x_reg[r * VECTORS + k, e] = value
                        store(y, row, i, x_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Return lanes per row, vectors per lane and row, and rows per lane."""
    vectors = -(-columns // width)
    if columns > MAX_LANES * MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and {MAX_LANES} lanes keep {MAX_LANES * MAX_VALUES} in registers")
    lanes_per_row = min(MAX_LANES, 1 << (vectors - 1).bit_length())
    per_lane = -(-vectors // lanes_per_row)
    return lanes_per_row, per_lane, min(MAX_ROWS, MAX_VALUES // (width * per_lane))


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    lanes_per_row, vectors, rows = geometry(problem.columns, width)
    constants = {"LANES": lanes_per_row, "VECTORS": vectors, "ROWS": rows, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(lanes, format.dtype, width, bounds=WARP * WARPS, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    rows_per_block = WARPS * rows * WARP // lanes_per_row
    return [Launch(kernel, -(-problem.rows // rows_per_block), WARP * WARPS, (*arrays, np.float32(problem.eps)))]
