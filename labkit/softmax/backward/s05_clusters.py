"""A cluster of blocks shares two rows that none of them could keep, in registers that hold them as memory does.

Each block sums its columns, and writes what it found into the shared memory of the others, behind one barrier of the
cluster; the other barrier, at the beginning, makes sure that all of them are there, and the loads hide it. In bfloat16
a register keeps two values, and half as many blocks do.

Costs, in passes over memory, each of them a matrix read or written once:

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
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load_raw, store, unpack

LARGEST = (1, 262144), (1, 131072), (1, 131071)
CLUSTER = 8  # blocks that share a row
SIZES = 1, 2, 4, 8
WIDTH = 4  # values of a piece
ELEMENT = np.float32  # what rows hold
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # what a register holds
WORDS = min(WIDTH, 4)  # registers of a piece
PIECES = 4  # of a thread and a row
SINGLES = 16  # of a thread and a row, where it takes one value at a time
USUAL_THREADS, MOST_THREADS = 512, 1024
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
SM_THREADS = 1024  # of an SM: each has 64 registers


@cuda.jit
def clusters(dy, y, dx, columns):
    kept_gradient = cuda.local.array((PIECES, WORDS), WORD)
    kept_value = cuda.local.array((PIECES, WORDS), WORD)
    gradient = cuda.local.array(WIDTH, np.float32)
    value = cuda.local.array(WIDTH, np.float32)
    of_warps = cuda.shared.array(MOST_WARPS, np.float32)
    of_blocks = cuda.shared.array(CLUSTER, np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row = np.uint32(cuda.blockIdx.x // CLUSTER)
    share = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)  # columns of a block
    first = min(rank * share, columns)
    count = np.uint32(min(first + share, columns) - first)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_raw(dy, row, first + i, kept_gradient[k])
            load_raw(y, row, first + i, kept_value[k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    total = np.float32(0)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(kept_gradient[k], gradient)
            unpack(kept_value[k], value)
            for e in range(WIDTH):
                total += value[e] * gradient[e]
    total = block_all_sum(total, of_warps)
    if CLUSTER > 1:
        if t < CLUSTER:
            ptx.cluster_store(of_blocks, rank, t, total)
        ptx.cluster_sync()
        total = np.float32(0)
        for block in range(CLUSTER):
            total += of_blocks[block]
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            unpack(kept_gradient[k], gradient)
            unpack(kept_value[k], value)
            for e in range(WIDTH):
                value[e] *= gradient[e] - total
            store(dx, row, first + i, value)


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Blocks of a cluster and of an SM, and threads of a block."""
    of_thread = PIECES * width if width > 1 else SINGLES
    for most_threads in (USUAL_THREADS, MOST_THREADS):
        for blocks in SIZES:
            threads = WARP * -(-columns // (blocks * of_thread * WARP))
            if threads <= most_threads:
                return blocks, max(1, SM_THREADS // threads), threads
    most = max(SIZES) * MOST_THREADS * of_thread
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {most}")


def launches(dy, y, dx, problem, format=FP32):
    """dx of each row."""
    problem.check(dy, y, dx, dtype=format.dtype)
    at_once = vector_width(dy, y, dx)
    blocks, in_sm, threads = geometry(problem.columns, at_once)
    bounds = threads, in_sm if at_once > 1 else 1
    constants = {"PIECES": PIECES if at_once > 1 else SINGLES, "CLUSTER": blocks}
    kernel = specialise_vectors(clusters, format.dtype, at_once, bounds, blocks, **constants)
    arrays = kernel_view(dy, at_once), kernel_view(y, at_once), kernel_view(dx, at_once), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows * blocks, threads, arrays)]
