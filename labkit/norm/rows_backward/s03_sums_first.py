"""One kernel computes the two sums of each row, and the next one all three gradients, along the columns.

A block of the second kernel needs nothing from its neighbours: the row sums contain their contribution to dx. It has no
barrier, rows may have any width, and a thread has 16-byte loads of several rows in flight. It runs from the last row to
the first, since L2 still holds what the first kernel read last.

Costs in passes over memory, each of which reads or writes a matrix once:

    2       along: dy and x read
    3       sums_first: dy and x read, dx written
    0       merge_partials: one row per block of a column
    5       passes in all

Limited by memory if rows are wide; with narrow rows most of a block's 256 threads are idle. `s04_one_read` keeps a row
on the chip between its two uses.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store, store_float32

CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
ROWS = 4  # rows of which a thread has a vector
VALUES = 16  # per thread and matrix
WARP, MAX_WARPS = 32, 8  # threads per warp, and warps per block
THREADS = WARP * MAX_WARPS  # per block of the kernel of columns
BLOCKS_PER_SM = 3  # of the kernel of columns: each thread has 80 registers


@cuda.jit
def along(dy, x, weight, mean, rstd, sums):
    loaded = cuda.local.array((3, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, MAX_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    columns = np.uint32(weight.shape[0])
    num_values = np.float32(columns)
    average, scale = np.float32(0), rstd[row]
    if CENTRED:
        average = mean[row]
    g_sum = gx_sum = np.float32(0)
    for v in range(t, columns // WIDTH, threads):
        i = np.uint32(WIDTH * v)
        load(dy, row, i, loaded[0])
        load(x, row, i, loaded[1])
        load_float32(weight, i, loaded[2])
        for e in range(WIDTH):
            g = loaded[0, e] * loaded[2, e]
            g_sum += g
            gx_sum += g * ((loaded[1, e] - average) * scale)
    g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials)
    if t == 0:
        sums[0, row] = g_sum / num_values if CENTRED else np.float32(0)
        sums[1, row] = gx_sum / num_values


@cuda.jit
def sums_first(dy, x, weight, mean, rstd, sums, dx, partials):
    dy_reg = cuda.local.array((ROWS, WIDTH), np.float32)
    x_reg = cuda.local.array((ROWS, WIDTH), np.float32)
    column = cuda.local.array((3, WIDTH), np.float32)  # weight, and the partial sums of dweight and dbias
    block, num_blocks = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    rows, i = np.uint32(x.shape[0]), np.uint32(WIDTH * cuda.grid(1))
    if i < weight.shape[0]:
        load_float32(weight, i, column[0])
        for e in range(WIDTH):
            column[1, e] = column[2, e] = np.float32(0)
        for start in range(block, rows, ROWS * num_blocks):
            for r in range(ROWS):
                reversed_row = np.uint32(start + r * num_blocks)
                if reversed_row < rows:
                    load(dy, rows - np.uint32(1) - reversed_row, i, dy_reg[r])
                    load(x, rows - np.uint32(1) - reversed_row, i, x_reg[r])
            for r in range(ROWS):
                reversed_row = np.uint32(start + r * num_blocks)
                if reversed_row < rows:
                    row = np.uint32(rows - np.uint32(1) - reversed_row)
                    average, scale, g_sum, gx_sum = np.float32(0), rstd[row], sums[0, row], sums[1, row]
                    if CENTRED:
                        average = mean[row]
                    for e in range(WIDTH):
                        x_hat = (x_reg[r, e] - average) * scale
                        column[1, e] += dy_reg[r, e] * x_hat
                        column[2, e] += dy_reg[r, e]
                        dy_reg[r, e] = (dy_reg[r, e] * column[0, e] - g_sum - x_hat * gx_sum) * scale
                    store(dx, row, i, dy_reg[r])
        store_float32(partials, block, i, column[1])
        if CENTRED:
            store_float32(partials, num_blocks + block, i, column[2])


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width = vector_width(dy, x, weight, dx)
    vectors, rows_at_once = problem.columns // width, VALUES // width
    row_blocks, threads = -(-vectors // THREADS), WARP * min(MAX_WARPS, -(-vectors // WARP))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    column_blocks = max(1, min(sms * BLOCKS_PER_SM // row_blocks, -(-problem.rows // rows_at_once)))
    sums = workspace.array("sums", (2, problem.rows), np.float32)
    partials = allocate_partials(problem, column_blocks, workspace)
    rows = specialise_vectors(along, format.dtype, width, bounds=THREADS, CENTRED=problem.is_centred)
    constants = {"ROWS": rows_at_once, "CENTRED": problem.is_centred}
    columns = specialise_vectors(sums_first, format.dtype, width, bounds=(THREADS, BLOCKS_PER_SM), **constants)
    dy, x, dx = (word_view(X, width) for X in (dy, x, dx))
    return [
        Launch(rows, problem.rows, threads, (dy, x, weight, mean, rstd, sums)),
        Launch(columns, (row_blocks, column_blocks), THREADS, (dy, x, weight, mean, rstd, sums, dx, partials)),
        merge_launch(problem, partials, dweight, dbias),
    ]
