"""A cluster of blocks shares two rows that exceed one block; registers hold them in their memory format.

Each block sums its columns, and stores the result to the shared memory of the others, with one cluster barrier. Another
cluster barrier, at the start, ensures that all blocks run; the loads hide it. In bfloat16 a register holds two values,
and half as many blocks suffice.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       clusters: dy and y read, dx written
    3       passes in all

Limited by memory.

Parts: `block_all_sum` of `labkit.parts.sums`; `load_raw`, `store`, `unpack` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load_raw, store, unpack

LARGEST = (1, 262144), (1, 131072), (1, 131071)  # also tested: the most work per thread
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # type of a register
WORDS = WIDTH if ELEMENT is np.float32 or WIDTH == 1 else WIDTH // 2  # registers per vector
VECTORS = 4  # vectors per thread and row
SINGLES = 16  # values per thread and row, if it loads one at a time
USUAL_THREADS, MAX_THREADS = 512, 1024  # per block, usually and for wide rows
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_THREADS = 1024  # with 64 registers each


@cuda.jit
def clusters(dy, y, dx, columns):
    dy_words = cuda.local.array((VECTORS, WORDS), WORD)
    y_words = cuda.local.array((VECTORS, WORDS), WORD)
    dy_reg = cuda.local.array(WIDTH, np.float32)
    y_reg = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array(MAX_WARPS, np.float32)
    block_partials = cuda.shared.array(CLUSTER, np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row = np.uint32(cuda.blockIdx.x // CLUSTER)
    columns_per_block = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)
    first = min(rank * columns_per_block, columns)
    count = np.uint32(min(first + columns_per_block, columns) - first)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_raw(dy, row, first + i, dy_words[k])
            load_raw(y, row, first + i, y_words[k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    row_sum = np.float32(0)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(dy_words[k], dy_reg)
            unpack(y_words[k], y_reg)
            for e in range(WIDTH):
                row_sum += y_reg[e] * dy_reg[e]
    row_sum = block_all_sum(row_sum, warp_partials)
    if CLUSTER > 1:
        if t < CLUSTER:
            ptx.cluster_store(block_partials, rank, t, row_sum)
        ptx.cluster_sync()
        row_sum = np.float32(0)
        for block in range(CLUSTER):
            row_sum += block_partials[block]
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            unpack(dy_words[k], dy_reg)
            unpack(y_words[k], y_reg)
            for e in range(WIDTH):
                y_reg[e] *= dy_reg[e] - row_sum
            store(dx, row, first + i, y_reg)


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Return blocks per cluster and per SM, and threads per block."""
    values_per_thread = VECTORS * width if width > 1 else SINGLES
    for max_threads in (USUAL_THREADS, MAX_THREADS):
        for blocks in CLUSTER_SIZES:
            threads = WARP * -(-columns // (blocks * values_per_thread * WARP))
            if threads <= max_threads:
                return blocks, max(1, SM_THREADS // threads), threads
    max_columns = max(CLUSTER_SIZES) * MAX_THREADS * values_per_thread
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max_columns}")


def launches(dy, y, dx, problem, format=FP32):
    """Return the launches for dx."""
    problem.check(dy, y, dx, dtype=format.dtype)
    width = vector_width(dy, y, dx)
    blocks, blocks_per_sm, threads = geometry(problem.columns, width)
    bounds = threads, blocks_per_sm if width > 1 else 1
    constants = {"VECTORS": VECTORS if width > 1 else SINGLES, "CLUSTER": blocks}
    kernel = specialise_vectors(clusters, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(dy, width), word_view(y, width), word_view(dx, width), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows * blocks, threads, arrays)]
