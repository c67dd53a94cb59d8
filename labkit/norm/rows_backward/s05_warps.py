"""Persistent warps, one row at a time: reductions need no barrier, and warps do not wait for each other.

A lane keeps eight or sixteen columns, so that rows have up to 512 values. Each warp has its own partial sums of all
columns; at the end those of a block are added in shared memory.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       warps: dy and x read, dx written
    0       merge_partials: one row per block
    3       passes in all

Limited by memory. `s07_clusters` is for wide rows.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward import EXAMPLES, NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store, store_float32

EXAMPLES = tuple(sizes for sizes in EXAMPLES if sizes[1] <= 512)  # the sizes that this step accepts
BENCHED = sizes_of_widths(*NARROW, ODD[0], WIDTHS[0])  # timed sizes
COMPARED = sizes_of_widths(WIDTHS[0])[0]  # the timed size by which steps are compared
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
VECTORS = 2  # vectors per lane
COLUMNS = 8  # per lane
ALL_COLUMNS = 32 * COLUMNS
FEW_COLUMNS, MAX_COLUMNS = 8, 16  # per lane
WARP, WARPS = 32, 8  # threads per warp, and warps per block
BLOCKS_PER_SM = {FEW_COLUMNS: 4, MAX_COLUMNS: 2}  # by columns per lane, which takes 64 or 128 registers


@cuda.jit
def warps(dy, x, weight, mean, rstd, dx, partials):
    dy_reg = cuda.local.array((VECTORS, WIDTH), np.float32)  # dy, then g
    x_hat = cuda.local.array((VECTORS, WIDTH), np.float32)  # x, then x_hat
    weight_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    dweight_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    dbias_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array((WARPS, ALL_COLUMNS), np.float32, alignment=16)
    t, warp, lane = cuda.threadIdx.x, np.uint32(cuda.threadIdx.x // WARP), np.uint32(cuda.threadIdx.x % WARP)
    block, blocks = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    num_values = np.float32(columns)
    # -- load the weights --
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * WARP + lane))
        if i < columns:
            load_float32(weight, i, weight_reg[k])
        for e in range(WIDTH):
            dweight_sum[k, e] = dbias_sum[k, e] = np.float32(0)

    # -- load a row --
    for r in range(block * WARPS + warp, x.shape[0], blocks * WARPS):
        row = np.uint32(r)
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                load(dy, row, i, dy_reg[k])
                load(x, row, i, x_hat[k])
        # -- sums of the row --
        average, scale = np.float32(0), rstd[row]
        if CENTRED:
            average = mean[row]
        g_sum = gx_sum = np.float32(0)
        for k in range(VECTORS):
            if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                for e in range(WIDTH):
                    x_hat[k, e] = (x_hat[k, e] - average) * scale
                    dweight_sum[k, e] += dy_reg[k, e] * x_hat[k, e]
                    dbias_sum[k, e] += dy_reg[k, e]
                    dy_reg[k, e] *= weight_reg[k, e]
                    g_sum += dy_reg[k, e]
                    gx_sum += dy_reg[k, e] * x_hat[k, e]
        g_sum = warp_all_sum(g_sum) / num_values if CENTRED else np.float32(0)
        gx_sum = warp_all_sum(gx_sum) / num_values
        # -- write dx --
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * WARP + lane))
            if i < columns:
                for e in range(WIDTH):
                    dy_reg[k, e] = (dy_reg[k, e] - g_sum - x_hat[k, e] * gx_sum) * scale
                store(dx, row, i, dy_reg[k])

    # -- write the partial sums of the block --
    for k in range(VECTORS):
        store_float32(warp_partials, warp, np.uint32(WIDTH * (k * WARP + lane)), dweight_sum[k])
    cuda.syncthreads()
    for i in range(t, columns, WARP * WARPS):
        column_sum = warp_partials[0, i]
        for other in range(1, WARPS):
            column_sum += warp_partials[other, i]
        partials[block, i] = column_sum
    if CENTRED:
        cuda.syncthreads()
        for k in range(VECTORS):
            store_float32(warp_partials, warp, np.uint32(WIDTH * (k * WARP + lane)), dbias_sum[k])
        cuda.syncthreads()
        for i in range(t, columns, WARP * WARPS):
            column_sum = warp_partials[0, i]
            for other in range(1, WARPS):
                column_sum += warp_partials[other, i]
            partials[blocks + block, i] = column_sum


def columns_per_lane(problem) -> int:
    """Return columns per lane."""
    if problem.columns > WARP * MAX_COLUMNS:
        raise TooLarge(f"a row has {problem.columns} values, and a warp keeps {WARP * MAX_COLUMNS} in registers")
    return FEW_COLUMNS if problem.columns <= WARP * FEW_COLUMNS else MAX_COLUMNS


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width, columns = vector_width(dy, x, weight, dx), columns_per_lane(problem)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    blocks = min(-(-problem.rows // WARPS), sms * BLOCKS_PER_SM[columns])
    partials = allocate_partials(problem, blocks, workspace)
    constants = {"VECTORS": columns // width, "COLUMNS": columns, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(warps, format.dtype, width, bounds=(WARP * WARPS, BLOCKS_PER_SM[columns]), **constants)
    arrays = word_view(dy, width), word_view(x, width), weight, mean, rstd, word_view(dx, width), partials
    return [Launch(kernel, blocks, WARP * WARPS, arrays), merge_launch(problem, partials, dweight, dbias)]
