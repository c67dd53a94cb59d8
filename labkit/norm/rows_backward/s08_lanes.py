"""A few lanes share a short row, so that a warp has several rows and none of its lanes is idle.

A row of 16 bfloat16 is two vectors of 16 bytes: two lanes have one of each matrix, and a warp reads 16 rows, 512
neighbouring bytes, by one load. Warps are persistent, and a lane has the same columns in all its rows. At the end the
lanes of a warp that have the same columns add their partial sums, and then the warps of a block do.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       lanes: dy and x read, dx written
    0       merge_partials: one row per block
    3       passes in all

Limited by memory. A lane keeps up to 16 columns, so that rows have at most 512.

Parts: `group_all_sum` of `labkit.parts.sums`; `load`, `load_float32`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward import EXAMPLES, NARROW, ODD, WIDTHS, sizes_of_widths
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import group_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store

# the sizes that this step accepts, and more rows
EXAMPLES = (*(sizes for sizes in EXAMPLES if sizes[1] <= 512), (70, 16, "layer"), (35, 27, "rms"))
BENCHED = sizes_of_widths(*NARROW, ODD[0], WIDTHS[0])  # timed sizes
COMPARED = BENCHED[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 512, 64, "layer"  # simulated for the roofline
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
LANES, MAX_LANES = 16, 32  # per row, a power of two
VECTORS = 2  # per lane and row
ROWS = 2  # per lane at once
SLOTS = ROWS * VECTORS
COLUMNS = 8  # per lane
ALL_COLUMNS = LANES * COLUMNS
FEW_COLUMNS, MAX_COLUMNS = 8, 16  # per lane
USUAL_VALUES = 8  # per lane and matrix, of several rows
WARP, WARPS = 32, 8  # threads per warp, and warps per block
BLOCKS_PER_SM = {FEW_COLUMNS: 3, MAX_COLUMNS: 2}  # by columns per lane, which takes 80 or 128 registers


@cuda.jit
def lanes(dy, x, weight, mean, rstd, dx, partials):
    dy_reg = cuda.local.array((SLOTS, WIDTH), np.float32)  # dy, then g
    x_hat = cuda.local.array((SLOTS, WIDTH), np.float32)  # x, then x_hat
    weight_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    dweight_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    dbias_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, WARPS, ALL_COLUMNS), np.float32)
    t, rows, columns = np.uint32(cuda.threadIdx.x), np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    block, blocks, lane = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x), np.uint32(t % LANES)
    warp, group, inv_columns = np.uint32(t // WARP), np.uint32(t % WARP // LANES), np.float32(1) / np.float32(columns)
    # -- load the weights --
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * LANES + lane))
        for e in range(WIDTH):
            weight_reg[k, e] = dweight_sum[k, e] = dbias_sum[k, e] = np.float32(0)
        if i < columns:
            load_float32(weight, i, weight_reg[k])

    # -- load rows --
    for start in range((block * WARPS + warp) * (ROWS * WARP // LANES), rows, blocks * (WARPS * ROWS * WARP // LANES)):
        for r in range(ROWS):
            row = np.uint32(start + r * (WARP // LANES) + group)
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * LANES + lane))
                for e in range(WIDTH):
                    dy_reg[r * VECTORS + k, e] = x_hat[r * VECTORS + k, e] = np.float32(0)
                if row < rows and i < columns:
                    load(dy, row, i, dy_reg[r * VECTORS + k])
                    load(x, row, i, x_hat[r * VECTORS + k])
        # -- sums of the rows --
        for r in range(ROWS):
            row = np.uint32(start + r * (WARP // LANES) + group)
            average = scale = g_sum = gx_sum = np.float32(0)
            if row < rows:
                scale = rstd[row]
                if CENTRED:
                    average = mean[row]
            for k in range(VECTORS):
                for e in range(WIDTH):
                    x_value = (x_hat[r * VECTORS + k, e] - average) * scale
                    dy_value = dy_reg[r * VECTORS + k, e]
                    dweight_sum[k, e] += dy_value * x_value
                    dbias_sum[k, e] += dy_value
                    g = dy_value * weight_reg[k, e]
                    g_sum += g
                    gx_sum += g * x_value
                    x_hat[r * VECTORS + k, e], dy_reg[r * VECTORS + k, e] = x_value, g
            g_sum = group_all_sum(g_sum, LANES) * inv_columns if CENTRED else np.float32(0)
            gx_sum = group_all_sum(gx_sum, LANES) * inv_columns
            # -- write dx --
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * LANES + lane))
                if row < rows and i < columns:
                    for e in range(WIDTH):
                        g, x_value = dy_reg[r * VECTORS + k, e], x_hat[r * VECTORS + k, e]
                        dy_reg[r * VECTORS + k, e] = (g - g_sum - x_value * gx_sum) * scale
                    store(dx, row, i, dy_reg[r * VECTORS + k])

    # -- write the partial sums of the block --
    for k in range(VECTORS):
        for e in range(WIDTH):
            dweight_value, dbias_value, offset = dweight_sum[k, e], dbias_sum[k, e], LANES
            while offset < WARP:
                dweight_value += cuda.shfl_xor_sync(0xFFFFFFFF, dweight_value, offset)
                dbias_value += cuda.shfl_xor_sync(0xFFFFFFFF, dbias_value, offset)
                offset *= 2
            if group == 0:
                warp_partials[0, warp, WIDTH * (k * LANES + lane) + e] = dweight_value
                warp_partials[1, warp, WIDTH * (k * LANES + lane) + e] = dbias_value
    cuda.syncthreads()
    for i in range(t, columns, WARP * WARPS):
        dweight_value, dbias_value = warp_partials[0, 0, i], warp_partials[1, 0, i]
        for other in range(1, WARPS):
            dweight_value += warp_partials[0, other, i]
            dbias_value += warp_partials[1, other, i]
        partials[block, i] = dweight_value
        if CENTRED:
            partials[blocks + block, i] = dbias_value


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Return lanes per row, vectors per lane and row, and rows per lane at once."""
    vectors = -(-columns // width)
    if columns > MAX_LANES * MAX_COLUMNS:
        limit = MAX_LANES * MAX_COLUMNS
        raise TooLarge(f"a row has {columns} values, and {MAX_LANES} lanes keep {limit} in registers")
    lanes_per_row = min(MAX_LANES, 1 << (vectors - 1).bit_length())
    per_lane = -(-vectors // lanes_per_row)
    return lanes_per_row, per_lane, max(1, USUAL_VALUES // (width * per_lane))


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width = vector_width(dy, x, weight, dx)
    lanes_per_row, vectors, rows = geometry(problem.columns, width)
    blocks_per_sm = BLOCKS_PER_SM[FEW_COLUMNS if vectors * width <= FEW_COLUMNS else MAX_COLUMNS]
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    blocks = min(-(-problem.rows * lanes_per_row // (WARPS * rows * WARP)), sms * blocks_per_sm)
    partials = allocate_partials(problem, blocks, workspace)
    constants = {"LANES": lanes_per_row, "VECTORS": vectors, "ROWS": rows, "COLUMNS": vectors * width}
    constants["CENTRED"] = problem.is_centred
    kernel = specialise_vectors(lanes, format.dtype, width, bounds=(WARP * WARPS, blocks_per_sm), **constants)
    arrays = word_view(dy, width), word_view(x, width), weight, mean, rstd, word_view(dx, width), partials
    return [Launch(kernel, blocks, WARP * WARPS, arrays), merge_launch(problem, partials, dweight, dbias)]
