"""A few lanes share a short row, so that a warp has several rows and none of its lanes is idle.

A row of 16 bfloat16 is two vectors of 16 bytes: two lanes have one each, and a warp reads 16 rows, 512 neighbouring
bytes, by one load. Maximum and sum take one exchange between lanes each, where those of a warp take five.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       lanes: read, written
    2       passes in all

Limited by memory. A lane keeps up to 32 values, so that rows have at most 512. From 256 values on `s04_warps`, which
has more lanes for a row, needs fewer registers.

Parts: `group_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import group_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store
from labkit.softmax.forward import EXAMPLES, NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.softmax.online import LOWEST_FLOAT32, exp, group_max

# the sizes that this step accepts, and more rows
EXAMPLES = (*(sizes for sizes in EXAMPLES if sizes[1] <= 512), (70, 16), (35, 27))
BENCHED = sizes_of_widths(*NARROW, ODD[0], WIDTHS[0])  # timed sizes
COMPARED = BENCHED[0]  # the timed size by which steps are compared
WIDTH = 4  # values per vector
LANES, MAX_LANES = 16, 16  # per row, a power of two
VECTORS = 2  # per lane and row
ROWS, MAX_ROWS = 2, 2  # per lane
SLOTS = ROWS * VECTORS
MAX_VALUES = 32  # per lane, of all its rows
WARP, WARPS = 32, 8  # threads per warp, and warps per block


@cuda.jit
def lanes(x, y, columns):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    t, rows = np.uint32(cuda.threadIdx.x), np.uint32(x.shape[0])
    start = np.uint32((cuda.blockIdx.x * WARPS + t // WARP) * (ROWS * WARP // LANES))
    first, lane = np.uint32(start + t % WARP // LANES), np.uint32(t % LANES)
    if start < rows:
        for r in range(ROWS):
            row = np.uint32(first + r * (WARP // LANES))
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * LANES + lane))
                for e in range(WIDTH):
                    x_reg[r * VECTORS + k, e] = LOWEST_FLOAT32
                if row < rows and i < columns:
                    load(x, row, i, x_reg[r * VECTORS + k])
        for r in range(ROWS):
            row = np.uint32(first + r * (WARP // LANES))
            row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
            for k in range(VECTORS):
                for e in range(WIDTH):
                    row_max = max(row_max, x_reg[r * VECTORS + k, e])
            row_max = group_max(row_max, LANES)
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * LANES + lane)) < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] = exp(x_reg[r * VECTORS + k, e] - row_max)
                        row_sum += x_reg[r * VECTORS + k, e]
            scale = np.float32(1) / group_all_sum(row_sum, LANES)
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * LANES + lane))
                if row < rows and i < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] *= scale
                    store(y, row, i, x_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Return lanes per row, vectors per lane and row, and rows per lane."""
    vectors = -(-columns // width)
    if columns > MAX_LANES * MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and {MAX_LANES} lanes keep {MAX_LANES * MAX_VALUES} in registers")
    lanes_per_row = min(MAX_LANES, 1 << (vectors - 1).bit_length())
    per_lane = -(-vectors // lanes_per_row)
    return lanes_per_row, per_lane, min(MAX_ROWS, MAX_VALUES // (width * per_lane))


def launches(x, y, problem, format=FP32):
    """Return the launch for y."""
    problem.check(x, y, dtype=format.dtype)
    width = vector_width(x, y)
    lanes_per_row, vectors, rows = geometry(problem.columns, width)
    constants = {"LANES": lanes_per_row, "VECTORS": vectors, "ROWS": rows}
    kernel = specialise_vectors(lanes, format.dtype, width, bounds=WARP * WARPS, **constants)
    arrays = word_view(x, width), word_view(y, width), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows * lanes_per_row // (WARPS * rows * WARP)), WARP * WARPS, arrays)]
