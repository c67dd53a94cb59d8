"""A cluster of blocks shares a row that exceeds one block; registers hold it in its memory format.

A row of 64k float32 is 256 KB, as much as all registers of an SM. A cluster of 8 blocks on neighbouring SMs keeps 8k
values of it per block. The blocks exchange maxima and sums through distributed shared memory, with one cluster barrier.
Another cluster barrier, at the start, ensures that all blocks run; the loads hide it. In bfloat16 a register holds two
values, and half as many blocks suffice. The exponentials would need a register each, and are recomputed for y.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       clusters: read, written
    2       passes in all

Limited by memory.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load_raw`, `store`, `unpack` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load_raw, store, unpack
from labkit.softmax.online import LOWEST_FLOAT32, block_max_and_sum, exp, warp_max

CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # type of a register
WORDS = WIDTH if ELEMENT is np.float32 or WIDTH == 1 else WIDTH // 2  # registers per vector
VECTORS = 8  # vectors per thread
SINGLES = 32  # values per thread, if it loads one at a time
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_THREADS = 1024  # with 64 registers each; also the largest block


@cuda.jit
def clusters(x, y, columns):
    x_words = cuda.local.array((VECTORS, WORDS), WORD)
    x_reg = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array((2, MAX_WARPS), np.float32)
    block_partials = cuda.shared.array((2, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row = np.uint32(cuda.blockIdx.x // CLUSTER)
    columns_per_block = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)
    first = min(rank * columns_per_block, columns)
    count = np.uint32(min(first + columns_per_block, columns) - first)
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_raw(x, row, first + i, x_words[k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    row_max, row_sum = LOWEST_FLOAT32, np.float32(0)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(x_words[k], x_reg)
            for e in range(WIDTH):
                row_max = max(row_max, x_reg[e])
    row_max = warp_max(row_max)
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(x_words[k], x_reg)
            for e in range(WIDTH):
                row_sum += exp(x_reg[e] - row_max)
    row_max, row_sum = block_max_and_sum(row_max, warp_all_sum(row_sum), warp_partials)
    if CLUSTER > 1:
        if t < CLUSTER:
            ptx.cluster_store(block_partials, (0, rank), t, row_max)
            ptx.cluster_store(block_partials, (1, rank), t, row_sum)
        ptx.cluster_sync()
        for block in range(CLUSTER):
            row_max = max(row_max, block_partials[0, block])
        row_sum = np.float32(0)
        for block in range(CLUSTER):
            row_sum += block_partials[1, block] * exp(block_partials[0, block] - row_max)
    scale = np.float32(1) / row_sum
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            unpack(x_words[k], x_reg)
            for e in range(WIDTH):
                x_reg[e] = exp(x_reg[e] - row_max) * scale
            store(y, row, first + i, x_reg)


def geometry(columns: int, width: int) -> tuple[int, int, int, int]:
    """Return blocks per cluster and per SM, threads per block, and vectors per thread."""
    vectors, vectors_per_thread = -(-columns // width), VECTORS if width > 1 else SINGLES
    for blocks in CLUSTER_SIZES:
        threads = WARP * -(-vectors // (blocks * vectors_per_thread * WARP))
        if threads <= SM_THREADS:
            return blocks, SM_THREADS // threads, threads, vectors_per_thread
    max_columns = max(CLUSTER_SIZES) * SM_THREADS * vectors_per_thread * width
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max_columns}")


def launches(x, y, problem, format=FP32):
    """Return the launch for y."""
    problem.check(x, y, dtype=format.dtype)
    width = vector_width(x, y)
    blocks, blocks_per_sm, threads, vectors = geometry(problem.columns, width)
    bounds = threads, blocks_per_sm if width > 1 else 1
    constants = {"VECTORS": vectors, "CLUSTER": blocks}
    kernel = specialise_vectors(clusters, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(x, width), word_view(y, width), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows * blocks, threads, arrays)]
