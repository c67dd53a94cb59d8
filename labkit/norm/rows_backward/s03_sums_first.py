"""One kernel finds the two sums of each row, and another then finds all three gradients on its way down the columns.

A block of the second kernel keeps to its columns, and needs nothing from its neighbours: their share in dx is in the
sums. So it has no barrier, rows may be as wide as they like, and a thread has loads of several rows under way, each of
16 bytes. It goes from the last row to the first, since L2 still holds what the first kernel read last.

Costs, in passes over memory, each of them a matrix read or written once:

    2       along: dy and x read
    3       sums_first: dy and x read, dx written
    0       merged: as many rows as there are blocks to a column
    5       passes in all

Limited by memory where rows are wide; of narrow ones a block of 256 threads leaves most of these idle. `s04_one_read`
keeps a row on the chip between its two uses.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward.parts import merge, room
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store, store_float32

CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
ROWS = 4  # of which a thread has a piece
VALUES = 16  # of a thread, of each matrix
WARP, MOST_WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * MOST_WARPS  # of a block that goes down the columns
IN_SM = 3  # such blocks of an SM: each thread has 80 registers


@cuda.jit
def along(dy, x, weight, mean, rstd, sums):
    own = cuda.local.array((3, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, MOST_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    columns = np.uint32(weight.shape[0])
    values = np.float32(columns)
    average, scale = np.float32(0), rstd[row]
    if CENTRED:
        average = mean[row]
    of_g = of_product = np.float32(0)
    for piece in range(t, columns // WIDTH, threads):
        i = np.uint32(WIDTH * piece)
        load(dy, row, i, own[0])
        load(x, row, i, own[1])
        load_float32(weight, i, own[2])
        for e in range(WIDTH):
            g = own[0, e] * own[2, e]
            of_g += g
            of_product += g * ((own[1, e] - average) * scale)
    of_g, of_product = block_all_sum2(of_g, of_product, of_warps)
    if t == 0:
        sums[0, row] = of_g / values if CENTRED else np.float32(0)
        sums[1, row] = of_product / values


@cuda.jit
def sums_first(dy, x, weight, mean, rstd, sums, dx, parts):
    gradient = cuda.local.array((ROWS, WIDTH), np.float32)
    normal = cuda.local.array((ROWS, WIDTH), np.float32)
    of_column = cuda.local.array((3, WIDTH), np.float32)  # weight, and the sums for dweight and dbias
    part, count = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    rows, i = np.uint32(x.shape[0]), np.uint32(WIDTH * cuda.grid(1))
    if i < weight.shape[0]:
        load_float32(weight, i, of_column[0])
        for e in range(WIDTH):
            of_column[1, e] = of_column[2, e] = np.float32(0)
        for start in range(part, rows, ROWS * count):
            for r in range(ROWS):
                before = np.uint32(start + r * count)
                if before < rows:
                    load(dy, rows - np.uint32(1) - before, i, gradient[r])
                    load(x, rows - np.uint32(1) - before, i, normal[r])
            for r in range(ROWS):
                before = np.uint32(start + r * count)
                if before < rows:
                    row = np.uint32(rows - np.uint32(1) - before)
                    average, scale, of_g, of_product = np.float32(0), rstd[row], sums[0, row], sums[1, row]
                    if CENTRED:
                        average = mean[row]
                    for e in range(WIDTH):
                        n = (normal[r, e] - average) * scale
                        of_column[1, e] += gradient[r, e] * n
                        of_column[2, e] += gradient[r, e]
                        gradient[r, e] = (gradient[r, e] * of_column[0, e] - of_g - n * of_product) * scale
                    store(dx, row, i, gradient[r])
        store_float32(parts, part, i, of_column[1])
        if CENTRED:
            store_float32(parts, count + part, i, of_column[2])


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    at_once = vector_width(dy, x, weight, dx)
    pieces, rows_at_once = problem.columns // at_once, VALUES // at_once
    wide, threads = -(-pieces // THREADS), WARP * min(MOST_WARPS, -(-pieces // WARP))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    count = max(1, min(sms * IN_SM // wide, -(-problem.rows // rows_at_once)))
    sums = workspace.array("sums", (2, problem.rows), np.float32)
    parts = room(problem, count, workspace)
    rows = specialise_vectors(along, format.dtype, at_once, THREADS, CENTRED=problem.is_centred)
    constants = {"ROWS": rows_at_once, "CENTRED": problem.is_centred}
    columns = specialise_vectors(sums_first, format.dtype, at_once, (THREADS, IN_SM), **constants)
    dy, x, dx = (kernel_view(X, at_once) for X in (dy, x, dx))
    return [
        Launch(rows, problem.rows, threads, (dy, x, weight, mean, rstd, sums)),
        Launch(columns, (wide, count), THREADS, (dy, x, weight, mean, rstd, sums, dx, parts)),
        merge(problem, parts, dweight, dbias),
    ]
