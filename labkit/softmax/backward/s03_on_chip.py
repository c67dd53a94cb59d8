"""Both rows stay in the registers of a block: they are read from memory once, by loads of 16 bytes.

Costs, in passes over memory, each of them a matrix read or written once:

    3       on_chip: dy and y read, dx written
    3       passes in all

Each thread keeps up to 16 values of both rows. Limited by memory where several blocks fit into an SM. Narrow rows leave
the threads of a block little to do before the barrier: `s04_warps` needs none.

Parts: `block_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store
from labkit.softmax.backward import WIDTHS, benched

BENCHED = benched(*WIDTHS[:5])  # those that it takes
WIDTH = 4  # values of a piece
PIECES = 2  # of a thread and a row
USUAL, MOST = 8, 16  # values of a thread and a row, where blocks are small, and at most
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block


@cuda.jit
def on_chip(dy, y, dx, columns):
    gradient = cuda.local.array((PIECES, WIDTH), np.float32)
    value = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array(MOST_WARPS, np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(dy, row, i, gradient[k])
            load(y, row, i, value[k])
    total = np.float32(0)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                total += value[k, e] * gradient[k, e]
    total = block_all_sum(total, of_warps)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            for e in range(WIDTH):
                value[k, e] *= gradient[k, e] - total
            store(dx, row, i, value[k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Pieces of a thread and a row, and threads of a block."""
    for of_thread in (USUAL, MOST):
        threads = WARP * -(-columns // (of_thread * WARP))
        if threads <= WARP * MOST_WARPS:
            return of_thread // width, threads
    raise TooLarge(f"a row has {columns} values, and a block keeps {WARP * MOST_WARPS * MOST} in registers")


def launches(dy, y, dx, problem, format=FP32):
    """dx of each row."""
    problem.check(dy, y, dx, dtype=format.dtype)
    at_once = vector_width(dy, y, dx)
    pieces, threads = geometry(problem.columns, at_once)
    kernel = specialise_vectors(on_chip, format.dtype, at_once, threads, PIECES=pieces)
    arrays = kernel_view(dy, at_once), kernel_view(y, at_once), kernel_view(dx, at_once), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows, threads, arrays)]
