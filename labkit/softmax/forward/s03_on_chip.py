"""A row stays in the registers of a block: it is read from memory once, by loads of 16 bytes.

Each thread keeps up to 32 values, in pieces of 16 bytes, and all its loads are under way before it looks at the first.
A warp takes its exponentials relative to its own maximum, without waiting for the others. What the warps found is
merged behind the only barrier, and one factor puts each exponential right: it rescales and divides at once.

Costs, in passes over memory, each of them the matrix read or written once:

    2       on_chip: read, written
    2       passes in all

Limited by memory where several blocks fit into an SM, so that some wait for memory while others sum. A row of 32k
values takes half the registers of an SM and more, and narrow rows leave the threads of a block little to do before the
barrier: `s04_warps` needs none.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store
from labkit.softmax.forward import WIDTHS, benched
from labkit.softmax.online import LEAST, exp, merge_block, warp_max

BENCHED = benched(*WIDTHS[:-1])  # those that it takes
WIDTH = 4  # values of a piece
PIECES = 4  # of a thread
USUAL, MOST = 4, 32  # pieces of a thread of a small block, and values of a thread
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block


@cuda.jit
def on_chip(x, y, columns):
    own = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, MOST_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(x, row, i, own[k])
    maximum, total = LEAST, np.float32(0)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                maximum = max(maximum, own[k, e])
    maximum = warp_max(maximum)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                own[k, e] = exp(own[k, e] - maximum)
                total += own[k, e]
    of_row, all_of_it = merge_block(maximum, warp_all_sum(total), of_warps)
    scale = exp(maximum - of_row) / all_of_it
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            for e in range(WIDTH):
                own[k, e] *= scale
            store(y, row, i, own[k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Pieces of a thread, the usual number or as many as it takes, and threads of a block."""
    pieces = -(-columns // width)
    of_thread = USUAL
    while of_thread * WARP * MOST_WARPS < pieces:
        of_thread *= 2
    if of_thread * width > MOST:
        raise TooLarge(f"a row has {columns} values, and a block keeps {WARP * MOST_WARPS * MOST} in registers")
    return of_thread, WARP * -(-pieces // (of_thread * WARP))


def launches(x, y, problem, format=FP32):
    """y of each row."""
    problem.check(x, y, dtype=format.dtype)
    at_once = vector_width(x, y)
    pieces, threads = geometry(problem.columns, at_once)
    kernel = specialise_vectors(on_chip, format.dtype, at_once, threads, PIECES=pieces)
    arrays = kernel_view(x, at_once), kernel_view(y, at_once), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows, threads, arrays)]
