"""A warp goes from row to row: its sums need no barrier, and no warp waits for another.

A lane keeps eight or sixteen columns, so that a warp has rows of up to 512 values. Each warp has sums of its own for
all columns; at the end those of a block are added up in shared memory.

Costs, in passes over memory, each of them a matrix read or written once:

    3       warps: dy and x read, dx written
    0       merged: as many rows as there are blocks
    3       passes in all

Limited by memory. `s06_clusters` is for wide rows.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward import EXAMPLES, WIDTHS, benched
from labkit.norm.rows_backward.parts import merge, room
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store, store_float32

EXAMPLES = tuple(sizes for sizes in EXAMPLES if sizes[1] <= 512)  # those that it takes
BENCHED = benched(WIDTHS[0])
COMPARED = BENCHED[0]
CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
PIECES = 2  # of a lane
COLUMNS = 8  # of a lane
ALL_COLUMNS = 32 * COLUMNS
FEW, MOST = 8, 16  # columns of a lane
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
IN_SM = {FEW: 4, MOST: 2}  # blocks of an SM, by columns of a lane, which takes 64 or 128 registers


@cuda.jit
def warps(dy, x, weight, mean, rstd, dx, parts):
    gradient = cuda.local.array((PIECES, WIDTH), np.float32)  # dy, then g
    normal = cuda.local.array((PIECES, WIDTH), np.float32)  # x, then n
    weights = cuda.local.array((PIECES, WIDTH), np.float32)
    of_weight = cuda.local.array((PIECES, WIDTH), np.float32)
    of_bias = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array((WARPS, ALL_COLUMNS), np.float32, alignment=16)
    t, warp, lane = cuda.threadIdx.x, np.uint32(cuda.threadIdx.x // WARP), np.uint32(cuda.threadIdx.x % WARP)
    block, blocks = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    values = np.float32(columns)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * WARP + lane))
        if i < columns:
            load_float32(weight, i, weights[k])
        for e in range(WIDTH):
            of_weight[k, e] = of_bias[k, e] = np.float32(0)

    for each in range(block * WARPS + warp, x.shape[0], blocks * WARPS):
        row = np.uint32(each)
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                load(dy, row, i, gradient[k])
                load(x, row, i, normal[k])
        average, scale = np.float32(0), rstd[row]
        if CENTRED:
            average = mean[row]
        of_g = of_product = np.float32(0)
        for k in range(PIECES):
            if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                for e in range(WIDTH):
                    normal[k, e] = (normal[k, e] - average) * scale
                    of_weight[k, e] += gradient[k, e] * normal[k, e]
                    of_bias[k, e] += gradient[k, e]
                    gradient[k, e] *= weights[k, e]
                    of_g += gradient[k, e]
                    of_product += gradient[k, e] * normal[k, e]
        of_g = warp_all_sum(of_g) / values if CENTRED else np.float32(0)
        of_product = warp_all_sum(of_product) / values
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                for e in range(WIDTH):
                    gradient[k, e] = (gradient[k, e] - of_g - normal[k, e] * of_product) * scale
                store(dx, row, i, gradient[k])

    for k in range(PIECES):
        store_float32(of_warps, warp, np.uint32(WIDTH * (k * WARP + lane)), of_weight[k])
    cuda.syncthreads()
    for i in range(t, columns, WARP * WARPS):
        total = of_warps[0, i]
        for other in range(1, WARPS):
            total += of_warps[other, i]
        parts[block, i] = total
    if CENTRED:
        cuda.syncthreads()
        for k in range(PIECES):
            store_float32(of_warps, warp, np.uint32(WIDTH * (k * WARP + lane)), of_bias[k])
        cuda.syncthreads()
        for i in range(t, columns, WARP * WARPS):
            total = of_warps[0, i]
            for other in range(1, WARPS):
                total += of_warps[other, i]
            parts[blocks + block, i] = total


def columns_of(problem) -> int:
    """Columns of a lane."""
    if problem.columns > WARP * MOST:
        raise TooLarge(f"a row has {problem.columns} values, and a warp keeps {WARP * MOST} in registers")
    return FEW if problem.columns <= WARP * FEW else MOST


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    at_once, of_lane = vector_width(dy, x, weight, dx), columns_of(problem)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    blocks = min(-(-problem.rows // WARPS), sms * IN_SM[of_lane])
    parts = room(problem, blocks, workspace)
    constants = {"PIECES": of_lane // at_once, "COLUMNS": of_lane, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(warps, format.dtype, at_once, (WARP * WARPS, IN_SM[of_lane]), **constants)
    arrays = kernel_view(dy, at_once), kernel_view(x, at_once), weight, mean, rstd, kernel_view(dx, at_once), parts
    return [Launch(kernel, blocks, WARP * WARPS, arrays), merge(problem, parts, dweight, dbias)]
