"""A cluster of blocks shares a row that none of them could keep, in registers that hold it as memory does.

A row of 64k float32 is 256 KB, as much as all registers of an SM. A cluster of 8 blocks, which run side by side, keeps
8k values of it in each. The blocks tell one another what they found by writing it into one another's shared memory,
behind one barrier of the cluster; the other barrier, at the beginning, makes sure that all of them are there, and the
loads hide it. In bfloat16 a register keeps two values, and half as many blocks do. The exponentials, which would need
a register each, are taken again for y.

Costs, in passes over memory, each of them the matrix read or written once:

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
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load_raw, store, unpack
from labkit.softmax.online import LEAST, exp, merge_block, warp_max

CLUSTER = 8  # blocks that share a row
SIZES = 1, 2, 4, 8
WIDTH = 4  # values of a piece
ELEMENT = np.float32  # what rows hold
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # what a register holds
WORDS = min(WIDTH, 4)  # registers of a piece
PIECES = 8  # of a thread
SINGLES = 32  # of a thread, where it takes one value at a time
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
SM_THREADS = 1024  # of a block at most, and of an SM: 64 registers each


@cuda.jit
def clusters(x, y, columns):
    kept = cuda.local.array((PIECES, WORDS), WORD)
    own = cuda.local.array(WIDTH, np.float32)
    of_warps = cuda.shared.array((2, MOST_WARPS), np.float32)
    of_blocks = cuda.shared.array((2, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    row = np.uint32(cuda.blockIdx.x // CLUSTER)
    share = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)  # columns of a block
    first = min(rank * share, columns)
    count = np.uint32(min(first + share, columns) - first)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_raw(x, row, first + i, kept[k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    maximum, total = LEAST, np.float32(0)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(kept[k], own)
            for e in range(WIDTH):
                maximum = max(maximum, own[e])
    maximum = warp_max(maximum)
    for k in range(PIECES):
        if np.uint32(WIDTH * (k * threads + t)) < count:
            unpack(kept[k], own)
            for e in range(WIDTH):
                total += exp(own[e] - maximum)
    maximum, total = merge_block(maximum, warp_all_sum(total), of_warps)
    if CLUSTER > 1:
        if t < CLUSTER:
            ptx.cluster_store(of_blocks, (0, rank), t, maximum)
            ptx.cluster_store(of_blocks, (1, rank), t, total)
        ptx.cluster_sync()
        for block in range(CLUSTER):
            maximum = max(maximum, of_blocks[0, block])
        total = np.float32(0)
        for block in range(CLUSTER):
            total += of_blocks[1, block] * exp(of_blocks[0, block] - maximum)
    scale = np.float32(1) / total
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            unpack(kept[k], own)
            for e in range(WIDTH):
                own[e] = exp(own[e] - maximum) * scale
            store(y, row, first + i, own)


def geometry(columns: int, width: int) -> tuple[int, int, int, int]:
    """Blocks of a cluster and of an SM, threads of a block, and pieces of a thread."""
    pieces, of_thread = -(-columns // width), PIECES if width > 1 else SINGLES
    for blocks in SIZES:
        threads = WARP * -(-pieces // (blocks * of_thread * WARP))
        if threads <= SM_THREADS:
            return blocks, SM_THREADS // threads, threads, of_thread
    most = max(SIZES) * SM_THREADS * of_thread * width
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {most}")


def launches(x, y, problem, format=FP32):
    """y of each row."""
    problem.check(x, y, dtype=format.dtype)
    at_once = vector_width(x, y)
    blocks, in_sm, threads, pieces = geometry(problem.columns, at_once)
    in_sm = in_sm if at_once > 1 else 1
    kernel = specialise_vectors(
        clusters, format.dtype, at_once, (threads, in_sm), blocks, PIECES=pieces, CLUSTER=blocks
    )
    arrays = kernel_view(x, at_once), kernel_view(y, at_once), np.uint32(problem.columns)
    return [Launch(kernel, problem.rows * blocks, threads, arrays)]
