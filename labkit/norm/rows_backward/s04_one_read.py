"""Persistent blocks keep their columns' sums in registers: one read serves all three gradients.

A thread always has the same columns. Registers hold the vectors of a row, weights, and partial sums of dweight and
dbias: forty numbers for eight columns. All blocks are resident at once, and each writes one row of partial sums for the
merge.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       one_read: dy and x read, dx written
    0       merge_partials: one row per block
    3       passes in all

Limited by the barrier of each row: before it all loads of a block have arrived, and none is in flight. `s05_warps` has
no barrier for narrow rows.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward import WIDTHS, sizes_of_widths
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store, store_float32

BENCHED = sizes_of_widths(*WIDTHS[:4])  # the sizes that this step accepts
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
VECTORS = 2  # vectors per thread
COLUMNS = 8  # per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_THREADS = 1024  # with 64 registers each; threads that load one value at a time need more


@cuda.jit
def one_read(dy, x, weight, mean, rstd, dx, partials):
    dy_reg = cuda.local.array((VECTORS, WIDTH), np.float32)  # dy, then g
    x_hat = cuda.local.array((VECTORS, WIDTH), np.float32)  # x, then x_hat
    weight_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    dweight_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    dbias_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, 2, MAX_WARPS), np.float32)  # two buffers, used alternately by rows
    t, threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    block, blocks = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    num_values = np.float32(columns)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load_float32(weight, i, weight_reg[k])
        for e in range(WIDTH):
            dweight_sum[k, e] = dbias_sum[k, e] = np.float32(0)

    phase = np.uint32(0)
    for r in range(block, x.shape[0], blocks):
        row = np.uint32(r)
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < columns:
                load(dy, row, i, dy_reg[k])
                load(x, row, i, x_hat[k])
        average, scale = np.float32(0), rstd[row]
        if CENTRED:
            average = mean[row]
        g_sum = gx_sum = np.float32(0)
        for k in range(VECTORS):
            if np.uint32(WIDTH * (k * threads + t)) < columns:
                for e in range(WIDTH):
                    x_hat[k, e] = (x_hat[k, e] - average) * scale
                    dweight_sum[k, e] += dy_reg[k, e] * x_hat[k, e]
                    dbias_sum[k, e] += dy_reg[k, e]
                    dy_reg[k, e] *= weight_reg[k, e]
                    g_sum += dy_reg[k, e]
                    gx_sum += dy_reg[k, e] * x_hat[k, e]
        g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials[phase])
        phase = np.uint32(1 - phase)
        g_sum = g_sum / num_values if CENTRED else np.float32(0)
        gx_sum /= num_values
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < columns:
                for e in range(WIDTH):
                    dy_reg[k, e] = (dy_reg[k, e] - g_sum - x_hat[k, e] * gx_sum) * scale
                store(dx, row, i, dy_reg[k])
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            store_float32(partials, block, i, dweight_sum[k])
            if CENTRED:
                store_float32(partials, blocks + block, i, dbias_sum[k])


def geometry(problem, width: int) -> tuple[int, int, int]:
    """Return the number of resident blocks, threads per block, and blocks per SM."""
    threads = WARP * -(-problem.columns // (COLUMNS * WARP))
    if threads > SM_THREADS:
        raise TooLarge(f"a row has {problem.columns} values, and a block keeps {SM_THREADS * COLUMNS} in registers")
    blocks_per_sm = max(1, SM_THREADS // threads // (1 if width > 1 else 2))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(problem.rows, sms * blocks_per_sm), threads, blocks_per_sm


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width = vector_width(dy, x, weight, dx)
    blocks, threads, blocks_per_sm = geometry(problem, width)
    partials = allocate_partials(problem, blocks, workspace)
    constants = {"VECTORS": COLUMNS // width, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(one_read, format.dtype, width, bounds=(threads, blocks_per_sm), **constants)
    arrays = word_view(dy, width), word_view(x, width), weight, mean, rstd, word_view(dx, width), partials
    return [Launch(kernel, blocks, threads, arrays), merge_launch(problem, partials, dweight, dbias)]
