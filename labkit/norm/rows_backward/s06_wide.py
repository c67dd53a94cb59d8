"""Rows of any width and alignment: a cluster sums each row, and then blocks of columns write all gradients.

The two kernels of `s03_sums_first`, which need no room on the chip. Few long rows do not fill a GPU with a block each:
here up to 8 blocks sum a row, and exchange their sums through distributed shared memory.

A row of 50257 bfloat16 begins anywhere between two multiples of 8 bytes. Up to 3 values precede its first aligned
vector of four, and up to 3 follow its last: one thread each has these. The rows of a block of columns are a multiple of
four apart: they begin at the same alignment, and a thread has the same columns in all of them.

Costs in passes over memory, each of which reads or writes a matrix once:

    2       along: dy and x read
    3       wide: dy and x read, dx written
    0       merge_partials: one row per block of a column; not for few rows, of which one block sums all
    5       passes in all

Limited by memory: L2 holds only a part of what the first kernel read.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `load_one`, `store`, `store_float32`,
`store_one` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_strided, reshape
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.rows_backward import EXAMPLES, LONG, ODD, WIDTHS, sizes_of_widths
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import inner_width, specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, load_one, store, store_float32, store_one

EXAMPLES = (*EXAMPLES, (5, 2, "rms", 0.1), (9, 333, "layer"))  # of all alignments, and a row without a whole vector
BENCHED = (*sizes_of_widths(*ODD, *WIDTHS[2:]), *LONG)  # timed sizes; narrow rows take long
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
ALIGNED = True  # whether all rows begin with a whole vector
CLUSTER, CLUSTER_SIZES = 8, (1, 2, 4, 8)  # blocks that sum a row
ROWS = 4  # rows of which a thread has a vector
VALUES = 16  # per thread and matrix
WARP, WARPS, MAX_WARPS = 32, 8, 32  # threads per warp; warps per block, and the most that sum a row
THREADS = WARP * WARPS  # per block of the kernel of columns
MIN_ROWS = 8  # of a block of columns
BLOCKS_PER_SM = 3  # of the kernel of columns: each thread has 80 registers


@cuda.jit(device=True)
def load_columns(vector, i, values):
    """Load `WIDTH` elements of a float32 vector."""
    if ALIGNED:
        load_float32(vector, i, values)
    else:
        for e in range(WIDTH):
            values[e] = vector[i + e]


@cuda.jit(device=True)
def store_columns(matrix, row, i, values):
    """Store `WIDTH` elements to a row of a float32 matrix."""
    if ALIGNED:
        store_float32(matrix, row, i, values)
    else:
        for e in range(WIDTH):
            matrix[row, i + e] = values[e]


@cuda.jit(device=True)
def ends_of_row(row, columns):
    """Return the number of values before the first aligned vector of a row, and the number of its vectors."""
    if ALIGNED:
        return np.uint32(0), np.uint32(columns // WIDTH)
    head = min(np.uint32(np.uint32(np.uint32(0) - np.uint32(row) * columns) % WIDTH), columns)
    return head, np.uint32((columns - head) // WIDTH)


@cuda.jit
def along(dy, x, weight, mean, rstd, sums):
    loaded = cuda.local.array((3, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, MAX_WARPS), np.float32)
    block_partials = cuda.shared.array((2, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row, columns = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(weight.shape[0])
    head, vectors = ends_of_row(row, columns)
    num_values = np.float32(columns)
    average, scale = np.float32(0), rstd[row]
    if CENTRED:
        average = mean[row]
    g_sum = gx_sum = np.float32(0)
    if CLUSTER > 1:
        ptx.cluster_sync()
    for v in range(rank * threads + t, vectors, CLUSTER * threads):
        i = np.uint32(head + WIDTH * v)
        load(dy, row, i, loaded[0])
        load(x, row, i, loaded[1])
        load_columns(weight, i, loaded[2])
        for e in range(WIDTH):
            g = loaded[0, e] * loaded[2, e]
            g_sum += g
            gx_sum += g * ((loaded[1, e] - average) * scale)
    if not ALIGNED and rank == 0 and t < columns - WIDTH * vectors:
        i = t if t < head else np.uint32(t + WIDTH * vectors)
        g = load_one(dy, row, i) * weight[i]
        g_sum += g
        gx_sum += g * ((load_one(x, row, i) - average) * scale)
    g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials)
    if CLUSTER > 1:
        if t == 0:
            ptx.cluster_store(block_partials, (0, rank), 0, g_sum)
            ptx.cluster_store(block_partials, (1, rank), 0, gx_sum)
        ptx.cluster_sync()
        g_sum = gx_sum = np.float32(0)
        if rank == 0 and t == 0:
            for block in range(CLUSTER):
                g_sum += block_partials[0, block]
                gx_sum += block_partials[1, block]
    if rank == 0 and t == 0:
        sums[0, row] = g_sum / num_values if CENTRED else np.float32(0)
        sums[1, row] = gx_sum / num_values


@cuda.jit
def wide(dy, x, weight, mean, rstd, sums, dx, dweight, dbias):
    dy_reg = cuda.local.array((ROWS, WIDTH), np.float32)
    x_reg = cuda.local.array((ROWS, WIDTH), np.float32)
    column = cuda.local.array((3, WIDTH), np.float32)  # weight, and the partial sums of dweight and dbias
    block, num_blocks = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    rows, columns, v = np.uint32(x.shape[0]), np.uint32(weight.shape[0]), np.uint32(cuda.grid(1))
    head, vectors = ends_of_row(rows - np.uint32(1) - block, columns)  # the same in all rows of a block
    is_single = not ALIGNED and v >= vectors
    i = np.uint32(head + WIDTH * v)
    if is_single:
        i = np.uint32(v - vectors)
        i = i if i < head else np.uint32(i + WIDTH * vectors)
    if i < columns:
        for e in range(WIDTH):
            column[0, e] = column[1, e] = column[2, e] = np.float32(0)
        if is_single:
            column[0, 0] = weight[i]
        else:
            load_columns(weight, i, column[0])
        # -- load a vector of some rows --
        for start in range(block, rows, ROWS * num_blocks):
            for r in range(ROWS):
                reversed_row = np.uint32(start + r * num_blocks)
                row = np.uint32(rows - np.uint32(1) - reversed_row)
                if reversed_row < rows:
                    if is_single:
                        for e in range(WIDTH):
                            dy_reg[r, e] = x_reg[r, e] = np.float32(0)
                        dy_reg[r, 0], x_reg[r, 0] = load_one(dy, row, i), load_one(x, row, i)
                    else:
                        load(dy, row, i, dy_reg[r])
                        load(x, row, i, x_reg[r])
            # -- write dx --
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
                    if is_single:
                        store_one(dx, row, i, dy_reg[r, 0])
                    else:
                        store(dx, row, i, dy_reg[r])
        # -- write the partial sums, which are those of all rows if there is one block of them --
        if is_single:
            dweight[block, i] = column[1, 0]
            if CENTRED:
                dbias[block, i] = column[2, 0]
        else:
            store_columns(dweight, block, i, column[1])
            if CENTRED:
                store_columns(dbias, block, i, column[2])


def sum_geometry(rows: int, vectors: int) -> tuple[int, int]:
    """Return blocks per row and threads per block, so that all SMs have work."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    blocks = next((blocks for blocks in CLUSTER_SIZES if rows * blocks >= 2 * sms), CLUSTER_SIZES[-1])
    warps = WARPS if blocks == 1 else MAX_WARPS
    return blocks, WARP * max(1, min(warps, -(-vectors // (blocks * WARP))))


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width = vector_width(dy, x, weight, dx, dweight, dbias)
    aligned = width > 1
    width = width if aligned else inner_width(dy, x, dx)
    vectors, rows_at_once = -(-problem.columns // width), VALUES // width
    blocks, threads = sum_geometry(problem.rows, vectors)
    row_blocks = -(-(vectors + (0 if aligned else 2 * width)) // THREADS)  # and single values at both ends
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    column_blocks = max(1, min(sms * BLOCKS_PER_SM // row_blocks, problem.rows // MIN_ROWS))
    if not aligned:
        column_blocks = min(-(-column_blocks // width) * width, problem.rows)
    sums = workspace.array("sums", (2, problem.rows), np.float32)
    sums_of_columns, merge = (reshape(X, 1, problem.columns) for X in (dweight, dbias)), []
    if column_blocks > 1:
        partials = allocate_partials(problem, column_blocks, workspace)
        shape, halves = (column_blocks, problem.columns), (0, partials.shape[0] - column_blocks)
        sums_of_columns = (as_strided(partials, shape, begin_byte=half * partials.strides[0]) for half in halves)
        merge = [merge_launch(problem, partials, dweight, dbias)]
    constants = {"ALIGNED": aligned, "CENTRED": problem.is_centred}
    rows = specialise_vectors(along, format.dtype, width, bounds=threads, cluster=blocks, CLUSTER=blocks, **constants)
    columns = specialise_vectors(
        wide, format.dtype, width, bounds=(THREADS, BLOCKS_PER_SM), ROWS=rows_at_once, **constants
    )
    dy, x, dx = (word_view(X, width) for X in (dy, x, dx))
    return [
        Launch(rows, problem.rows * blocks, threads, (dy, x, weight, mean, rstd, sums)),
        Launch(columns, (row_blocks, column_blocks), THREADS, (dy, x, weight, mean, rstd, sums, dx, *sums_of_columns)),
        *merge,
    ]
