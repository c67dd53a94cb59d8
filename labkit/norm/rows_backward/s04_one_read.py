"""Blocks go from row to row, and keep the sums of their columns in registers: one read serves all three gradients.

A thread always has the same columns. It keeps their weights, and what it has added up of dweight and dbias, in
registers, beside its pieces of the row: forty numbers for eight columns. So few blocks are launched that all run at
once, and each leaves one row of sums for the merge.

Costs, in passes over memory, each of them a matrix read or written once:

    3       one_read: dy and x read, dx written
    0       merged: as many rows as there are blocks
    3       passes in all

Limited by the barrier of each row, before which a block has all it asked for, and asks for nothing. `s05_warps` has no
barrier where rows are narrow.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward import WIDTHS, benched
from labkit.norm.rows_backward.parts import merge, room
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store, store_float32

BENCHED = benched(*WIDTHS[:4])  # those that it takes
CENTRED = True  # not so in RMS norm
WIDTH = 4  # values of a piece
PIECES = 2  # of a thread
COLUMNS = 8  # of a thread
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
SM_THREADS = 1024  # of an SM: each has 64 registers; those that take one value at a time need more


@cuda.jit
def one_read(dy, x, weight, mean, rstd, dx, parts):
    gradient = cuda.local.array((PIECES, WIDTH), np.float32)  # dy, then g
    normal = cuda.local.array((PIECES, WIDTH), np.float32)  # x, then n
    weights = cuda.local.array((PIECES, WIDTH), np.float32)
    of_weight = cuda.local.array((PIECES, WIDTH), np.float32)
    of_bias = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, 2, MOST_WARPS), np.float32)  # for one row after the other
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    block, blocks = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    values = np.float32(columns)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load_float32(weight, i, weights[k])
        for e in range(WIDTH):
            of_weight[k, e] = of_bias[k, e] = np.float32(0)

    turn = np.uint32(0)
    for each in range(block, x.shape[0], blocks):
        row = np.uint32(each)
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < columns:
                load(dy, row, i, gradient[k])
                load(x, row, i, normal[k])
        average, scale = np.float32(0), rstd[row]
        if CENTRED:
            average = mean[row]
        of_g = of_product = np.float32(0)
        for k in range(PIECES):
            if np.uint32(WIDTH * (k * threads + t)) < columns:
                for e in range(WIDTH):
                    normal[k, e] = (normal[k, e] - average) * scale
                    of_weight[k, e] += gradient[k, e] * normal[k, e]
                    of_bias[k, e] += gradient[k, e]
                    gradient[k, e] *= weights[k, e]
                    of_g += gradient[k, e]
                    of_product += gradient[k, e] * normal[k, e]
        of_g, of_product = block_all_sum2(of_g, of_product, of_warps[turn])
        turn = np.uint32(1 - turn)
        of_g = of_g / values if CENTRED else np.float32(0)
        of_product /= values
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < columns:
                for e in range(WIDTH):
                    gradient[k, e] = (gradient[k, e] - of_g - normal[k, e] * of_product) * scale
                store(dx, row, i, gradient[k])
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            store_float32(parts, block, i, of_weight[k])
            if CENTRED:
                store_float32(parts, blocks + block, i, of_bias[k])


def geometry(problem, width: int) -> tuple[int, int, int]:
    """Blocks, as many as run at once; threads of each; and blocks of an SM."""
    threads = WARP * -(-problem.columns // (COLUMNS * WARP))
    if threads > SM_THREADS:
        raise TooLarge(f"a row has {problem.columns} values, and a block keeps {SM_THREADS * COLUMNS} in registers")
    in_sm = max(1, SM_THREADS // threads // (1 if width > 1 else 2))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(problem.rows, sms * in_sm), threads, in_sm


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    at_once = vector_width(dy, x, weight, dx)
    blocks, threads, in_sm = geometry(problem, at_once)
    parts = room(problem, blocks, workspace)
    constants = {"PIECES": COLUMNS // at_once, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(one_read, format.dtype, at_once, (threads, in_sm), **constants)
    arrays = kernel_view(dy, at_once), kernel_view(x, at_once), weight, mean, rstd, kernel_view(dx, at_once), parts
    return [Launch(kernel, blocks, threads, arrays), merge(problem, parts, dweight, dbias)]
