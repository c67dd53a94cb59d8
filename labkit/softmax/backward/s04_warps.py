"""A warp per row: its sum needs no barrier, and warps do not wait for each other.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       warps: dy and y read, dx written
    3       passes in all

Limited by memory. A lane keeps up to 16 values of both rows, so that these have at most 512. `s06_clusters` is for wide
rows.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store
from labkit.softmax.backward import EXAMPLES, NARROW, ODD, WIDTHS, sizes_of_widths

EXAMPLES = tuple(sizes for sizes in EXAMPLES if sizes[1] <= 512)  # the sizes that this step accepts
BENCHED = sizes_of_widths(*NARROW, ODD[0], WIDTHS[0])  # timed sizes
COMPARED = sizes_of_widths(WIDTHS[0])[0]  # the timed size by which steps are compared
WIDTH = 4  # values per vector
VECTORS = 2  # vectors per lane and row
ROWS = 2  # per warp
SLOTS = ROWS * VECTORS
MAX_VALUES = 16  # per lane and matrix
WARP, WARPS = 32, 8  # threads per warp, and warps per block
BLOCKS_PER_SM = 4  # each thread has 64 registers


@cuda.jit
def warps(dy, y, dx, columns):
    dy_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    y_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, last = np.uint32(cuda.threadIdx.x % WARP), np.uint32(y.shape[0] - 1)
    if start <= last:
        for r in range(ROWS):  # if their number is odd, the last row twice
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(dy, min(np.uint32(start + r), last), i, dy_reg[r * VECTORS + k])
                    load(y, min(np.uint32(start + r), last), i, y_reg[r * VECTORS + k])
        for r in range(ROWS):
            row_sum = np.float32(0)
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        row_sum += y_reg[r * VECTORS + k, e] * dy_reg[r * VECTORS + k, e]
            row_sum = warp_all_sum(row_sum)
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    for e in range(WIDTH):
                        y_reg[r * VECTORS + k, e] *= dy_reg[r * VECTORS + k, e] - row_sum
                    store(dx, min(np.uint32(start + r), last), i, y_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per lane and row, and rows per warp."""
    vectors = -(-columns // (width * WARP))
    if columns > WARP * MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MAX_VALUES} in registers")
    return vectors, 2 if 2 * vectors * width <= MAX_VALUES else 1


def launches(dy, y, dx, problem, format=FP32):
    """Return the launches for dx."""
    problem.check(dy, y, dx, dtype=format.dtype)
    width = vector_width(dy, y, dx)
    vectors, rows = geometry(problem.columns, width)
    bounds = WARP * WARPS, BLOCKS_PER_SM
    kernel = specialise_vectors(warps, format.dtype, width, bounds=bounds, VECTORS=vectors, ROWS=rows)
    arrays = word_view(dy, width), word_view(y, width), word_view(dx, width), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, arrays)]
