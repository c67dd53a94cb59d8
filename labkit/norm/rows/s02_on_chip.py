"""A row stays in the registers of a block: it is read from memory once, by loads of 16 bytes.

Each thread keeps up to 32 values, in pieces of 16 bytes, and all its loads are under way before it sums the first. What
the step before did by reading again is done on registers: the sums, and y.

Costs, in passes over memory, each of them the matrix read or written once:

    2       on_chip: read, written
    2       passes in all

Limited by memory where several blocks fit into an SM, so that some wait for memory while others sum. A row of 32k
values takes all registers of an SM, and narrow rows leave the threads of a block little to do between two barriers:
`s03_warps` needs none of these.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import WIDTHS, benched
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store

BENCHED = benched(*WIDTHS[:-1])  # those that it takes
CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
PIECES = 4  # of a thread
USUAL, MOST = 4, 32  # pieces of a thread of a small block, and values of a thread
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block


@cuda.jit
def on_chip(x, weight, bias, y, mean, rstd, eps):
    own = cuda.local.array((PIECES, WIDTH), np.float32)
    of_column = cuda.local.array((2, WIDTH), np.float32)
    of_warps = cuda.shared.array((3, MOST_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    columns = np.uint32(weight.shape[0])
    values = np.float32(columns)
    share = np.float32(1) / values  # a division is some ten instructions
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(x, row, i, own[k])
    total = away = squares = average = rest = np.float32(0)
    if CENTRED:
        for k in range(PIECES):
            if np.uint32(WIDTH * (k * threads + t)) < columns:
                for e in range(WIDTH):
                    total += own[k, e]
        average = block_all_sum(total, of_warps[0]) * share
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                own[k, e] -= average
                away += own[k, e]
                squares += own[k, e] * own[k, e]
    away, squares = block_all_sum2(away, squares, of_warps[1:])
    if CENTRED:
        rest = away * share
        squares -= rest * rest * values
        squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
    scale = np.float32(1) / sqrt(squares * share + eps)
    if t == 0:
        rstd[row] = scale
        if CENTRED:
            mean[row] = average + rest
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load_float32(weight, i, of_column[0])
            if CENTRED:
                load_float32(bias, i, of_column[1])
            for e in range(WIDTH):
                own[k, e] = (own[k, e] - rest) * scale * of_column[0, e]
                if CENTRED:
                    own[k, e] += of_column[1, e]
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


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    at_once = vector_width(x, weight, bias, y)
    pieces, threads = geometry(problem.columns, at_once)
    kernel = specialise_vectors(on_chip, format.dtype, at_once, threads, PIECES=pieces, CENTRED=problem.is_centred)
    arrays = kernel_view(x, at_once), weight, bias, kernel_view(y, at_once), mean, rstd
    return [Launch(kernel, problem.rows, threads, (*arrays, np.float32(problem.eps)))]
