"""Rows of an odd width: aligned vectors inside of a row, and single values at its ends.

A row of 50257 bfloat16 begins anywhere between two multiples of 8 bytes, and its neighbour elsewhere. Up to 3 values
precede its first aligned vector of four, and up to 3 follow its last: one thread each loads, keeps and stores these.
All others have vectors, as if the row began there. Some lanes of a warp share a narrow row, and a cluster of blocks a
wide one, as in `s06_clusters`.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       unaligned: dy and y read, dx written
    3       passes in all

Limited by memory. A thread keeps up to 16 values of both rows.

Parts: `block_all_sum`, `group_all_sum` of `labkit.parts.sums`; `load_one`, `load_raw`, `store`, `store_one`, `unpack`
of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum, group_all_sum
from labkit.parts.vector_widths import inner_width, specialise_vectors, word_view
from labkit.parts.vectors import load_one, load_raw, store, store_one, unpack
from labkit.softmax.backward import EXAMPLES, LONG, ODD, sizes_of_widths

EXAMPLES = (*EXAMPLES, (5, 2), (9, 333))  # of all alignments, and rows that end before their first vector
BENCHED = (*sizes_of_widths(*ODD), *LONG)  # timed sizes
COMPARED = BENCHED[1]  # the timed size by which steps are compared
LARGEST = (1, 131072), (1, 65536)  # also tested: the most work per thread
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # type of a register
WORDS = WIDTH if ELEMENT is np.float32 or WIDTH == 1 else WIDTH // 2  # registers per vector
VECTORS, VALUES = 4, 16  # vectors and values per thread and row
ROWS = 1  # per block
LANES, MIN_LANES = 32, 8  # per row, if a warp has several: at least one for each single value
WARP, WARPS, MAX_WARPS = 32, 8, 32  # threads per warp; warps per block of several rows, and the most
USUAL_THREADS, MAX_THREADS = 512, 1024  # per block, usually and for wide rows
SM_THREADS = 1024  # with 64 registers each


@cuda.jit
def unaligned(dy, y, dx, columns):
    dy_words = cuda.local.array((VECTORS, WORDS), WORD)
    y_words = cuda.local.array((VECTORS, WORDS), WORD)
    dy_reg = cuda.local.array(WIDTH, np.float32)
    y_reg = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array(MAX_WARPS, np.float32)
    block_partials = cuda.shared.array(CLUSTER, np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row = np.uint32(cuda.blockIdx.x // CLUSTER)
    if ROWS > 1:
        row, t, threads = np.uint32(cuda.blockIdx.x * ROWS + t // LANES), np.uint32(t % LANES), np.uint32(LANES)
    columns = columns if row < dy.shape[0] else np.uint32(0)
    # -- aligned vectors of the row, shared by the cluster, and single values at its ends --
    head = min(np.uint32(np.uint32(np.uint32(0) - row * columns) % WIDTH), columns)
    vectors = np.uint32((columns - head) // WIDTH)
    vectors_per_block = np.uint32((vectors + CLUSTER - 1) // CLUSTER)
    first = min(rank * vectors_per_block, vectors)
    count = np.uint32(min(first + vectors_per_block, vectors) - first)
    first = np.uint32(head + WIDTH * first)
    has_single = rank == 0 and t < columns - WIDTH * vectors
    single_i = t if t < head else np.uint32(t + WIDTH * vectors)
    # -- load both rows --
    single_dy = single_y = np.float32(0)
    for k in range(VECTORS):
        v = np.uint32(k * threads + t)
        if v < count:
            load_raw(dy, row, first + WIDTH * v, dy_words[k])
            load_raw(y, row, first + WIDTH * v, y_words[k])
    if has_single:
        single_dy, single_y = load_one(dy, row, single_i), load_one(y, row, single_i)
    if CLUSTER > 1:
        ptx.cluster_sync()
    # -- their sum --
    row_sum = single_y * single_dy
    for k in range(VECTORS):
        if np.uint32(k * threads + t) < count:
            unpack(dy_words[k], dy_reg)
            unpack(y_words[k], y_reg)
            for e in range(WIDTH):
                row_sum += y_reg[e] * dy_reg[e]
    row_sum = group_all_sum(row_sum, LANES) if ROWS > 1 else block_all_sum(row_sum, warp_partials)
    if CLUSTER > 1:
        if t < CLUSTER:
            ptx.cluster_store(block_partials, rank, t, row_sum)
        ptx.cluster_sync()
        row_sum = np.float32(0)
        for block in range(CLUSTER):
            row_sum += block_partials[block]
    # -- write dx --
    for k in range(VECTORS):
        v = np.uint32(k * threads + t)
        if v < count:
            unpack(dy_words[k], dy_reg)
            unpack(y_words[k], y_reg)
            for e in range(WIDTH):
                y_reg[e] *= dy_reg[e] - row_sum
            store(dx, row, first + WIDTH * v, y_reg)
    if has_single:
        store_one(dx, row, single_i, single_y * (single_dy - row_sum))


def geometry(columns: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and rows per block."""
    if columns <= WARP * VALUES:
        lanes = max(MIN_LANES, 1 << (-(-columns // VALUES) - 1).bit_length())
        return 1, WARP * WARPS, WARP * WARPS // lanes
    for max_threads in (USUAL_THREADS, MAX_THREADS):
        for blocks in CLUSTER_SIZES:
            threads = WARP * -(-columns // (blocks * VALUES * WARP))
            if threads <= max_threads:
                return blocks, threads, 1
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(CLUSTER_SIZES) * MAX_THREADS * VALUES}")


def launches(dy, y, dx, problem, format=FP32):
    """Return the launch for dx."""
    problem.check(dy, y, dx, dtype=format.dtype)
    width, (blocks, threads, rows) = inner_width(dy, y, dx), geometry(problem.columns)
    row_threads = blocks * threads // rows
    constants = {"VECTORS": -(-problem.columns // (width * row_threads)), "CLUSTER": blocks, "ROWS": rows}
    constants["LANES"] = min(WARP, row_threads)
    bounds = threads, SM_THREADS // threads
    kernel = specialise_vectors(unaligned, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = *(word_view(X, width) for X in (dy, y, dx)), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows // rows) * blocks, threads, arrays)]
