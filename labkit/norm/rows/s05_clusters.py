"""A cluster of blocks shares a row, and each keeps the weights of its columns in registers.

A row of 64k float32 takes 256 KB, more than the 227 KB of shared memory of an SM. A cluster of 8 blocks, which run side
by side, keeps 8k values in each. The blocks tell one another what they found by writing it into one another's shared
memory, behind one barrier of the cluster. Since a block stays with its columns from row to row, their weights and
biases are read once in all. Three rows have room, so that two are under way while one is summed.

Costs, in passes over memory, each of them the matrix read or written once:

    2       clusters: read, written
    2       passes in all

Limited by memory. The sums of the cluster's blocks are about the mean of its first one, which may be away from that of
the row: its distance squared is at most as many times the variance as there are blocks, so that little is lost.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.pieces import begin, load_numbers, seen, store, suited, take, width
from labkit.norm.totals import block_total, block_totals

CENTRED = True  # not so in RMS norm
CLUSTER = 8  # blocks that share a row
SIZES = 1, 2, 4, 8
WIDTH = 4  # values of a piece
PIECES = 4  # of a thread
COLUMNS = 16  # of a thread
ELEMENT = np.float32  # what rows hold
STAGES = 3  # rows that have room
PENDING = STAGES - 1  # that are under way while one is summed
FIELDS = 4  # what blocks tell one another: how many values, their mean in two floats, and squares about it
WARP, USUAL_THREADS, MOST_THREADS = 32, 512, 1024
MOST_WARPS = MOST_THREADS // WARP
SM_THREADS = 1024  # of an SM: each has 64 registers; those that take one value at a time need more
SMS = 132  # of an H100


@cuda.jit
def clusters(x, weight, bias, y, mean, rstd, eps):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)
    own = cuda.local.array((1, WIDTH), np.float32)
    weights = cuda.local.array((PIECES, WIDTH), np.float32)
    biases = cuda.local.array((PIECES, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, 3, MOST_WARPS), np.float32)  # for one row after the other
    parts = cuda.shared.array((2, FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    cluster, step = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    rows, columns = np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    share = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)  # columns of a block
    first = min(rank * share, columns)
    count = np.uint32(min(first + share, columns) - first)
    values, of_block = np.float32(columns), np.float32(count)

    for stage in range(STAGES):
        if cluster + stage * step < rows:
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * threads + t))
                if i < count:
                    place = np.uint32(WIDTH * ((stage * PIECES + k) * threads + t))
                    begin(kept, place, x, np.uint32(cluster + stage * step), first + i)
        ptx.cp_async_commit()
    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_numbers(weight, first + i, weights, k)
            if CENTRED:
                load_numbers(bias, first + i, biases, k)
    if CLUSTER > 1:
        ptx.cluster_sync()

    turn = stage = np.uint32(0)
    for row in range(cluster, rows, step):
        ptx.cp_async_wait(PENDING)
        total = away = squares = average = rest = np.float32(0)
        if CENTRED:
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * threads + t)) < count:
                    take(kept, np.uint32(WIDTH * ((stage * PIECES + k) * threads + t)), own, 0)
                    for e in range(WIDTH):
                        total += own[0, e]
            average = block_total(total, of_warps[turn, 0]) / max(of_block, np.float32(1))
        for k in range(PIECES):
            if np.uint32(WIDTH * (k * threads + t)) < count:
                take(kept, np.uint32(WIDTH * ((stage * PIECES + k) * threads + t)), own, 0)
                for e in range(WIDTH):
                    value = own[0, e] - average
                    away += value
                    squares += value * value
        away, squares = block_totals(away, squares, of_warps[turn, 1:])
        if CLUSTER > 1:
            if t < CLUSTER:
                ptx.cluster_store(parts, (turn, 0, rank), t, of_block)
                ptx.cluster_store(parts, (turn, 1, rank), t, average)
                ptx.cluster_store(parts, (turn, 2, rank), t, away)
                ptx.cluster_store(parts, (turn, 3, rank), t, squares)
            ptx.cluster_sync()
            average = parts[turn, 1, 0]
            away = squares = np.float32(0)
            for block in range(CLUSTER):
                squares += parts[turn, 3, block]
                if CENTRED:
                    n, apart = parts[turn, 0, block], parts[turn, 1, block] - average
                    away += n * apart + parts[turn, 2, block]
                    squares += apart * (n * apart + np.float32(2) * parts[turn, 2, block])
        if CENTRED:
            rest = away / values
            squares -= rest * rest * values
            squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
        scale = np.float32(1) / sqrt(squares / values + eps)
        turn = np.uint32(1 - turn)
        if rank == 0 and t == 0:
            rstd[row] = scale
            if CENTRED:
                mean[row] = average + rest

        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                place = np.uint32(WIDTH * ((stage * PIECES + k) * threads + t))
                take(kept, place, own, 0)
                for e in range(WIDTH):
                    own[0, e] = (own[0, e] - average - rest) * scale * weights[k, e]
                    if CENTRED:
                        own[0, e] += biases[k, e]
                store(y, np.uint32(row), first + i, own, 0)
                if row + STAGES * step < rows:
                    begin(kept, place, x, np.uint32(row + STAGES * step), first + i)
        ptx.cp_async_commit()
        stage = np.uint32((stage + 1) % STAGES)


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int, int]:
    """Clusters, as many as run at once; blocks of each, and of an SM; threads of a block; and bytes that it keeps."""
    for most_threads in (USUAL_THREADS, MOST_THREADS):
        for blocks in SIZES:
            pieces = -(-problem.columns // (width * blocks))  # of a block
            threads = WARP * -(-pieces * width // (COLUMNS * WARP))
            if threads <= most_threads:
                in_sm = max(1, SM_THREADS // threads // (1 if width > 1 else 2))
                kept_bytes = STAGES * COLUMNS * threads * itemsize
                return min(problem.rows, in_sm * (SMS // blocks)), blocks, in_sm, threads, kept_bytes
    raise TooLarge(f"a row has {problem.columns} values, and a cluster keeps {max(SIZES) * MOST_THREADS * COLUMNS}")


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    at_once = width(x, weight, bias, y)
    number, blocks, in_sm, threads, kept_bytes = geometry(problem, format.itemsize, at_once)
    constants = {"PIECES": COLUMNS // at_once, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    kernel = suited(clusters, format.dtype, at_once, (threads, in_sm), blocks, **constants)
    arrays = seen(x, at_once), weight, bias, seen(y, at_once), mean, rstd
    return [Launch(kernel, number * blocks, threads, (*arrays, np.float32(problem.eps)), kept_bytes)]
