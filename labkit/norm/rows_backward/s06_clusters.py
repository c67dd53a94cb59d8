"""Rows come by asynchronous copies, two ahead of the one that is summed, and a cluster of blocks shares a wide one.

A block of `s04_one_read` asks for nothing while it sums and waits. Here three rows of both matrices have room in shared
memory: as soon as a thread has written dx of a piece, it begins to copy the third next row's into its place. That also
leaves the registers to weights and sums, which are now all that a thread keeps. A cluster of 8 blocks has 64k columns;
its blocks write what they found into one another's shared memory.

Costs, in passes over memory, each of them a matrix read or written once:

    3       clusters: dy and x read, dx written
    0       merged: as many rows as there are clusters
    3       passes in all

Limited by memory as long as a block has a row by itself. Blocks that share one meet at each row, and at the barrier
all must wait until what they wrote of the row before has arrived. In bfloat16, where a row has half the bytes,
`s03_sums_first` is faster then.

Parts: `block_all_sum2` of `labkit.parts.sums`; `copy_async`, `load_float32`, `load_shared`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward.parts import merge, room
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import copy_async, load_float32, load_shared, store, store_float32

CENTRED = True  # not so in RMS norm
CLUSTER = 8  # blocks that share a row
SIZES = 1, 2, 4, 8
WIDTH = 4  # values of a piece
PIECES = 2  # of a thread
COLUMNS = 8  # of a thread
ELEMENT = np.float32  # what rows hold
STAGES = 3  # rows that have room
PENDING = STAGES - 1  # that are under way while one is summed
WARP, USUAL_THREADS, MOST_THREADS = 32, 512, 1024
MOST_WARPS = MOST_THREADS // WARP
SM_THREADS = 1024  # of an SM: each has 64 registers; those that take one value at a time need more


@cuda.jit
def clusters(dy, x, weight, mean, rstd, dx, parts):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)
    gradient = cuda.local.array(WIDTH, np.float32)
    normal = cuda.local.array(WIDTH, np.float32)
    weights = cuda.local.array((PIECES, WIDTH), np.float32)
    of_weight = cuda.local.array((PIECES, WIDTH), np.float32)
    of_bias = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, 2, MOST_WARPS), np.float32)  # for one row after the other
    of_blocks = cuda.shared.array((2, 2, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    cluster, step = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    rows, columns = np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    share = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)  # columns of a block
    first = min(rank * share, columns)
    count = np.uint32(min(first + share, columns) - first)
    values, room_of_row = np.float32(columns), np.uint32(PIECES * WIDTH * threads)

    for stage in range(STAGES):
        row = np.uint32(cluster + stage * step)
        if row < rows:
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * threads + t))
                if i < count:
                    copy_async(kept, 2 * stage * room_of_row + i, dy, row, first + i)
                    copy_async(kept, (2 * stage + 1) * room_of_row + i, x, row, first + i)
        ptx.cp_async_commit()
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_float32(weight, first + i, weights[k])
        for e in range(WIDTH):
            of_weight[k, e] = of_bias[k, e] = np.float32(0)
    if CLUSTER > 1:
        ptx.cluster_sync()

    turn = stage = np.uint32(0)
    average = next_average = np.float32(0)
    next_scale = rstd[cluster]
    if CENTRED:
        next_average = mean[cluster]
    for each in range(cluster, rows, step):
        row = np.uint32(each)
        of_dy, of_x = np.uint32(2 * stage * room_of_row), np.uint32((2 * stage + 1) * room_of_row)
        average, scale = next_average, next_scale
        following = min(row + step, rows - np.uint32(1))
        next_scale = rstd[following]
        if CENTRED:
            next_average = mean[following]
        ptx.cp_async_wait(PENDING)
        of_g = of_product = np.float32(0)
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load_shared(kept, of_dy + i, gradient)
                load_shared(kept, of_x + i, normal)
                for e in range(WIDTH):
                    n, g = (normal[e] - average) * scale, gradient[e] * weights[k, e]
                    of_weight[k, e] += gradient[e] * n
                    of_bias[k, e] += gradient[e]
                    of_g += g
                    of_product += g * n
        of_g, of_product = block_all_sum2(of_g, of_product, of_warps[turn])
        if CLUSTER > 1:
            if t < CLUSTER:
                ptx.cluster_store(of_blocks, (turn, 0, rank), t, of_g)
                ptx.cluster_store(of_blocks, (turn, 1, rank), t, of_product)
            ptx.cluster_sync()
            of_g = of_product = np.float32(0)
            for block in range(CLUSTER):
                of_g += of_blocks[turn, 0, block]
                of_product += of_blocks[turn, 1, block]
        turn = np.uint32(1 - turn)
        of_g = of_g / values if CENTRED else np.float32(0)
        of_product /= values
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load_shared(kept, of_dy + i, gradient)
                load_shared(kept, of_x + i, normal)
                for e in range(WIDTH):
                    n, g = (normal[e] - average) * scale, gradient[e] * weights[k, e]
                    gradient[e] = (g - of_g - n * of_product) * scale
                store(dx, row, first + i, gradient)
                if row + STAGES * step < rows:
                    copy_async(kept, of_dy + i, dy, np.uint32(row + STAGES * step), first + i)
                    copy_async(kept, of_x + i, x, np.uint32(row + STAGES * step), first + i)
        ptx.cp_async_commit()
        stage = np.uint32((stage + 1) % STAGES)
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            store_float32(parts, cluster, first + i, of_weight[k])
            if CENTRED:
                store_float32(parts, step + cluster, first + i, of_bias[k])


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int, int]:
    """Clusters, as many as run at once; blocks of each, and of an SM; threads of a block; and bytes that it keeps."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for most_threads in (USUAL_THREADS, MOST_THREADS):
        for blocks in SIZES:
            pieces = -(-problem.columns // (width * blocks))  # of a block
            threads = WARP * -(-pieces * width // (COLUMNS * WARP))
            if threads <= most_threads:
                in_sm = max(1, SM_THREADS // threads // (1 if width > 1 else 2))
                kept_bytes = 2 * STAGES * COLUMNS * threads * itemsize
                return min(problem.rows, in_sm * (sms // blocks)), blocks, in_sm, threads, kept_bytes
    raise TooLarge(f"a row has {problem.columns} values, and a cluster keeps {max(SIZES) * MOST_THREADS * COLUMNS}")


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """The three gradients; RMS norm has neither mean nor dbias, and its kernels look at none."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    at_once = vector_width(dy, x, weight, dx)
    number, blocks, in_sm, threads, kept_bytes = geometry(problem, format.itemsize, at_once)
    parts = room(problem, number, workspace)
    constants = {"PIECES": COLUMNS // at_once, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    kernel = specialise_vectors(clusters, format.dtype, at_once, (threads, in_sm), blocks, **constants)
    arrays = kernel_view(dy, at_once), kernel_view(x, at_once), weight, mean, rstd, kernel_view(dx, at_once), parts
    return [Launch(kernel, number * blocks, threads, arrays, kept_bytes), merge(problem, parts, dweight, dbias)]
