"""A row stays in the registers of a block: it is read from memory once, by 16-byte loads.

Each thread keeps up to 32 values, in vectors of 16 bytes, and all its loads are in flight before it uses the first. A
warp computes its exponentials relative to its own maximum, without waiting for other warps. The only barrier is before
the merge of all warps; one factor then rescales and divides each exponential.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       on_chip: read, written
    2       passes in all

Limited by memory if several blocks fit into an SM, so that some wait for memory while others sum. A row of 32k values
takes more than half of the registers of an SM, and in narrow rows the threads of a block have little work before the
barrier: `s04_warps` has no barrier.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store
from labkit.softmax.forward import WIDTHS, sizes_of_widths
from labkit.softmax.online import LOWEST_FLOAT32, block_max_and_sum, exp, warp_max

BENCHED = sizes_of_widths(*WIDTHS[:-1])  # the sizes that this step accepts
WIDTH = 4  # values per vector
VECTORS = 4  # vectors per thread
USUAL_VECTORS, MAX_VALUES = 4, 32  # vectors per thread of a small block, and values per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block


@cuda.jit
def on_chip(x, y, columns):
    x_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, MAX_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(x, row, i, x_reg[k])
    row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                row_max = max(row_max, x_reg[k, e])
    row_max = warp_max(row_max)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                x_reg[k, e] = exp(x_reg[k, e] - row_max)
                row_sum += x_reg[k, e]
    block_max, block_sum = block_max_and_sum(row_max, warp_all_sum(row_sum), warp_partials)
    scale = exp(row_max - block_max) / block_sum
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            for e in range(WIDTH):
                x_reg[k, e] *= scale
            store(y, row, i, x_reg[k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per thread, the usual number or more for wide rows, and threads per block."""
    vectors = -(-columns // width)
    vectors_per_thread = USUAL_VECTORS
    while vectors_per_thread * WARP * MAX_WARPS < vectors:
        vectors_per_thread *= 2
    if vectors_per_thread * width > MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and a block keeps {WARP * MAX_WARPS * MAX_VALUES} in registers")
    return vectors_per_thread, WARP * -(-vectors // (vectors_per_thread * WARP))


def launches(x, y, problem, format=FP32):
    """Return the launch for y."""
    problem.check(x, y, dtype=format.dtype)
    width = vector_width(x, y)
    vectors, threads = geometry(problem.columns, width)
    kernel = specialise_vectors(on_chip, format.dtype, width, bounds=threads, VECTORS=vectors)
    arrays = word_view(x, width), word_view(y, width), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows, threads, arrays)]
