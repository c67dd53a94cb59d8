"""A warp per row: its maximum and its sum need no barrier, and warps do not wait for each other.

A row of 256 values is two 16-byte vectors per lane. A warp processes two such rows at once, to have more loads in
flight. With a whole row in one warp no rescaling is needed.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       warps: read, written
    2       passes in all

Limited by memory. A lane keeps up to 32 values, so that rows have at most 1024. `s06_clusters` is for wide rows.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store
from labkit.softmax.forward import NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.softmax.online import LOWEST_FLOAT32, exp, warp_max

BENCHED = sizes_of_widths(*NARROW, ODD[0], *WIDTHS[:2])  # the sizes that this step accepts
COMPARED = sizes_of_widths(WIDTHS[1])[0]  # the timed size by which steps are compared
WIDTH = 4  # values per vector
VECTORS = 4  # vectors per lane and row
ROWS = 2  # per warp
SLOTS = ROWS * VECTORS
MAX_VALUES = 32  # per lane
WARP, WARPS = 32, 8  # threads per warp, and warps per block


@cuda.jit
def warps(x, y, columns):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, last = np.uint32(cuda.threadIdx.x % WARP), np.uint32(x.shape[0] - 1)
    if start <= last:
        for r in range(ROWS):  # if their number is odd, the last row twice
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(x, min(np.uint32(start + r), last), i, x_reg[r * VECTORS + k])
        for r in range(ROWS):
            row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        row_max = max(row_max, x_reg[r * VECTORS + k, e])
            row_max = warp_max(row_max)
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] = exp(x_reg[r * VECTORS + k, e] - row_max)
                        row_sum += x_reg[r * VECTORS + k, e]
            scale = np.float32(1) / warp_all_sum(row_sum)
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    for e in range(WIDTH):
                        x_reg[r * VECTORS + k, e] *= scale
                    store(y, min(np.uint32(start + r), last), i, x_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per lane and row, and rows per warp."""
    vectors = -(-columns // (width * WARP))
    if columns > WARP * MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MAX_VALUES} in registers")
    return vectors, 2 if 2 * vectors * width <= MAX_VALUES else 1


def launches(x, y, problem, format=FP32):
    """Return the launch for y."""
    problem.check(x, y, dtype=format.dtype)
    width = vector_width(x, y)
    vectors, rows = geometry(problem.columns, width)
    kernel = specialise_vectors(warps, format.dtype, width, bounds=WARP * WARPS, VECTORS=vectors, ROWS=rows)
    arrays = word_view(x, width), word_view(y, width), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, arrays)]
