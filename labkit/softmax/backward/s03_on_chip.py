"""Both rows stay in the registers of a block: they are read from memory once, by 16-byte loads.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       on_chip: dy and y read, dx written
    3       passes in all

Each thread keeps up to 16 values of both rows. Limited by memory if several blocks fit into an SM. In narrow rows the
threads of a block have little work before the barrier: `s04_warps` has no barrier.

Parts: `block_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store
from labkit.softmax.backward import WIDTHS, sizes_of_widths

BENCHED = sizes_of_widths(*WIDTHS[:5])  # the sizes that this step accepts
WIDTH = 4  # values per vector
VECTORS = 2  # vectors per thread and row
USUAL_VALUES, MAX_VALUES = 8, 16  # per thread and row: for small blocks, and the limit
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block


@cuda.jit
def on_chip(dy, y, dx, columns):
    dy_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    y_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array(MAX_WARPS, np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(dy, row, i, dy_reg[k])
            load(y, row, i, y_reg[k])
    row_sum = np.float32(0)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                row_sum += y_reg[k, e] * dy_reg[k, e]
    row_sum = block_all_sum(row_sum, warp_partials)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            for e in range(WIDTH):
                y_reg[k, e] *= dy_reg[k, e] - row_sum
            store(dx, row, i, y_reg[k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per thread and row, and threads per block."""
    for values_per_thread in (USUAL_VALUES, MAX_VALUES):
        threads = WARP * -(-columns // (values_per_thread * WARP))
        if threads <= WARP * MAX_WARPS:
            return values_per_thread // width, threads
    raise TooLarge(f"a row has {columns} values, and a block keeps {WARP * MAX_WARPS * MAX_VALUES} in registers")


def launches(dy, y, dx, problem, format=FP32):
    """Return the launches for dx."""
    problem.check(dy, y, dx, dtype=format.dtype)
    width = vector_width(dy, y, dx)
    vectors, threads = geometry(problem.columns, width)
    kernel = specialise_vectors(on_chip, format.dtype, width, bounds=threads, VECTORS=vectors)
    arrays = word_view(dy, width), word_view(y, width), word_view(dx, width), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows, threads, arrays)]
