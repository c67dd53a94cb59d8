"""A row stays in shared memory, and each value that was written makes room for one of the block's next row.

Shared memory keeps rows that are too wide for registers: an SM has 227 KB of it, and a thread's copies to it need no
registers while they are under way. Blocks go from row to row. A thread that has written y of a piece begins at once to
copy the next row's piece into its place, where nobody else reads or writes: memory is read and written at the same time
even where a row leaves room for one block only.

Costs, in passes over memory, each of them the matrix read or written once:

    2       overlapped: read, written
    2       passes in all

Limited by what a block waits for between two rows, where registers suffice: there `s02_on_chip` is faster, whose blocks
end, and leave their place to one that has already asked for its row. Rows of more than 226 KB are for `s05_clusters`.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `copy_async`, `load_float32`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import copy_async, load_float32, load_shared, store

CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
ELEMENT = np.float32  # what rows hold
LEAST = 4  # pieces of a thread
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
SM_BYTES, MOST_BYTES = 227 * 1024, 226 * 1024  # of shared memory: of an SM, and of a row
SM_THREADS = 2048
OF_BLOCK_BYTES = 2048  # of shared memory that is no row's


@cuda.jit
def overlapped(x, weight, bias, y, mean, rstd, eps):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)
    own = cuda.local.array(WIDTH, np.float32)
    of_column = cuda.local.array((2, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, 3, MOST_WARPS), np.float32)  # for one row after the other
    t, threads, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    pieces, values = np.uint32(columns // WIDTH), np.float32(columns)
    share = np.float32(1) / values  # a division is some ten instructions
    for piece in range(t, pieces, threads):
        copy_async(kept, WIDTH * piece, x, np.uint32(cuda.blockIdx.x), WIDTH * piece)
    ptx.cp_async_commit()

    turn = 0
    for row in range(cuda.blockIdx.x, x.shape[0], blocks):
        ptx.cp_async_wait(0)
        total = away = squares = average = rest = np.float32(0)
        if CENTRED:
            for piece in range(t, pieces, threads):
                load_shared(kept, WIDTH * piece, own)
                for e in range(WIDTH):
                    total += own[e]
            average = block_all_sum(total, of_warps[turn, 0]) * share
        for piece in range(t, pieces, threads):
            load_shared(kept, WIDTH * piece, own)
            for e in range(WIDTH):
                value = own[e] - average
                away += value
                squares += value * value
        away, squares = block_all_sum2(away, squares, of_warps[turn, 1:])
        if CENTRED:
            rest = away * share
            squares -= rest * rest * values
            squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
        scale = np.float32(1) / sqrt(squares * share + eps)
        turn = 1 - turn
        if t == 0:
            rstd[row] = scale
            if CENTRED:
                mean[row] = average + rest
        for piece in range(t, pieces, threads):
            i = np.uint32(WIDTH * piece)
            load_shared(kept, i, own)
            load_float32(weight, i, of_column[0])
            if CENTRED:
                load_float32(bias, i, of_column[1])
            for e in range(WIDTH):
                own[e] = (own[e] - average - rest) * scale * of_column[0, e]
                if CENTRED:
                    own[e] += of_column[1, e]
            store(y, np.uint32(row), i, own)
            if row + blocks < x.shape[0]:
                copy_async(kept, i, x, np.uint32(row + blocks), i)
        ptx.cp_async_commit()


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Blocks, as many as run at once; threads of each; and bytes of a row."""
    kept_bytes = problem.columns * itemsize
    if kept_bytes > MOST_BYTES - OF_BLOCK_BYTES:
        most = (MOST_BYTES - OF_BLOCK_BYTES) // itemsize
        raise TooLarge(f"a row has {problem.columns} values, and a block keeps {most} in shared memory")
    warps = max(1, min(MOST_WARPS, problem.columns // (width * LEAST * WARP)))
    in_sm = min(SM_BYTES // (kept_bytes + OF_BLOCK_BYTES), SM_THREADS // (WARP * warps))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(problem.rows, sms * in_sm), WARP * warps, kept_bytes


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    at_once = vector_width(x, weight, bias, y)
    blocks, threads, kept_bytes = geometry(problem, format.itemsize, at_once)
    kernel = specialise_vectors(overlapped, format.dtype, at_once, threads, CENTRED=problem.is_centred)
    arrays = kernel_view(x, at_once), weight, bias, kernel_view(y, at_once), mean, rstd
    return [Launch(kernel, blocks, threads, (*arrays, np.float32(problem.eps)), kept_bytes)]
