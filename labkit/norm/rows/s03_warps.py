"""A warp takes a row: its sums need no barrier, and no warp waits for another.

A row of 256 values is two pieces of 16 bytes for each lane of a warp. It takes two such rows at once, so that it has
more loads under way, and reads weights and biases once for both.

Costs, in passes over memory, each of them the matrix read or written once:

    2       warps: read, written
    2       passes in all

Limited by memory, and where values have 2 bytes nearly by instructions. A lane keeps up to 32 values, so that rows are
at most 1024 wide. `s04_overlapped` is for wide ones.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import WIDTHS, benched
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store

BENCHED = benched(*WIDTHS[:2])  # those that it takes
COMPARED = BENCHED[1]
CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
PIECES = 4  # of a lane and a row
ROWS = 2  # of a warp
SLOTS = ROWS * PIECES
MOST = 32  # values of a lane
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block


@cuda.jit
def warps(x, weight, bias, y, mean, rstd, eps):
    own = cuda.local.array((SLOTS, WIDTH), np.float32)
    of_column = cuda.local.array((2, WIDTH), np.float32)
    scales = cuda.local.array(ROWS, np.float32)
    shifts = cuda.local.array(ROWS, np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, columns = np.uint32(cuda.threadIdx.x % WARP), np.uint32(weight.shape[0])
    last, values = np.uint32(x.shape[0] - 1), np.float32(columns)
    share = np.float32(1) / values  # a division is some ten instructions
    if start <= last:
        for r in range(ROWS):  # the last row twice, where their number is odd
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(x, min(np.uint32(start + r), last), i, own[r * PIECES + k])
        for r in range(ROWS):
            total = away = squares = average = rest = np.float32(0)
            if CENTRED:
                for k in range(PIECES):
                    if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                        for e in range(WIDTH):
                            total += own[r * PIECES + k, e]
                average = warp_all_sum(total) * share
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        own[r * PIECES + k, e] -= average
                        away += own[r * PIECES + k, e]
                        squares += own[r * PIECES + k, e] * own[r * PIECES + k, e]
            squares = warp_all_sum(squares)
            if CENTRED:
                rest = warp_all_sum(away) * share
                squares -= rest * rest * values
                squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
            scales[r] = np.float32(1) / sqrt(squares * share + eps)
            shifts[r] = -rest * scales[r]
            if lane == 0:
                row = min(np.uint32(start + r), last)
                rstd[row] = scales[r]
                if CENTRED:
                    mean[row] = average + rest
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                load_float32(weight, i, of_column[0])
                if CENTRED:
                    load_float32(bias, i, of_column[1])
                for r in range(ROWS):
                    for e in range(WIDTH):
                        value = (own[r * PIECES + k, e] * scales[r] + shifts[r]) * of_column[0, e]
                        if CENTRED:
                            value += of_column[1, e]
                        own[r * PIECES + k, e] = value
                    store(y, min(np.uint32(start + r), last), i, own[r * PIECES + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Pieces of a lane and a row, and rows that a warp takes at once."""
    pieces = -(-columns // (width * WARP))
    if columns > WARP * MOST:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MOST} in registers")
    return pieces, 2 if 2 * pieces * width <= MOST else 1


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    at_once = vector_width(x, weight, bias, y)
    pieces, rows = geometry(problem.columns, at_once)
    constants = {"PIECES": pieces, "ROWS": rows, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(warps, format.dtype, at_once, WARP * WARPS, **constants)
    arrays = kernel_view(x, at_once), weight, bias, kernel_view(y, at_once), mean, rstd
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, (*arrays, np.float32(problem.eps)))]
