"""A cluster of blocks shares a row that none of them could keep, and takes two rows at once.

A row of 64k float32 is 256 KB, as much as all registers of an SM. A cluster of 8 blocks, which run side by side, keeps
8k values of it in each. The blocks tell one another what they found by writing it into one another's shared memory,
behind one barrier of the cluster; the other barrier, at the beginning, makes sure that all of them are there, and the
loads hide it. Such rows also come with half a megabyte of weights and biases, which L2 has to deliver for each: a block
that takes the same columns of two rows reads them once for both. Two blocks fit into an SM, and none goes on to
another row: before its next barrier it would have to wait until all it wrote has arrived.

Costs, in passes over memory, each of them the matrix read or written once:

    2       clusters: read, written
    2       passes in all

Limited by memory in float32; in bfloat16, where a row has half the bytes, by instructions and barriers, so that
`s04_overlapped` is faster as long as it takes the row. The sums of the cluster's blocks are about the mean of its first
one, which may be away from that of the row: its distance squared is at most as many times the variance as there are
blocks, so that little is lost.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, load_float32, store

LARGEST = (1, 131072), (1, 131071)
CENTRED = True  # not so in RMS norm
CLUSTER = 8  # blocks that share a row
SIZES = 1, 2, 4, 8
WIDTH = 4  # values of a piece
PIECES = 4  # of a thread and a row
COLUMNS = 16  # of a thread
ROWS = 2  # of a cluster
SLOTS = ROWS * PIECES
SHAPES = (512, 2), (1024, 1)  # threads of a block at most, and rows of its cluster
FIELDS = 4  # what blocks tell one another: how many values, their mean, and sums of distances and squares about it
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
SM_THREADS = 1024  # of an SM: each has 64 registers; those that take one value at a time need more


@cuda.jit
def clusters(x, weight, bias, y, mean, rstd, eps):
    own = cuda.local.array((SLOTS, WIDTH), np.float32)
    of_column = cuda.local.array((2, WIDTH), np.float32)
    averages = cuda.local.array(ROWS, np.float32)
    rests = cuda.local.array(ROWS, np.float32)
    scales = cuda.local.array(ROWS, np.float32)
    of_warps = cuda.shared.array((ROWS, 3, MOST_WARPS), np.float32)
    parts = cuda.shared.array((ROWS, FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    start = np.uint32(cuda.blockIdx.x // CLUSTER * ROWS)
    last, columns = np.uint32(x.shape[0] - 1), np.uint32(weight.shape[0])
    share = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)  # columns of a block
    first = min(rank * share, columns)
    count = np.uint32(min(first + share, columns) - first)
    values, of_block = np.float32(columns), np.float32(count)
    inverse = np.float32(1) / values  # a division is some ten instructions
    inverse_of_block = np.float32(1) / max(of_block, np.float32(1))

    for r in range(ROWS):  # the last row twice, where their number is odd
        for k in range(PIECES):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load(x, min(np.uint32(start + r), last), first + i, own[r * PIECES + k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    for r in range(ROWS):
        total = away = squares = average = np.float32(0)
        if CENTRED:
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * threads + t)) < count:
                    for e in range(WIDTH):
                        total += own[r * PIECES + k, e]
            average = block_all_sum(total, of_warps[r, 0]) * inverse_of_block
        for k in range(PIECES):
            if np.uint32(WIDTH * (k * threads + t)) < count:
                for e in range(WIDTH):
                    value = own[r * PIECES + k, e] - average
                    away += value
                    squares += value * value
        away, squares = block_all_sum2(away, squares, of_warps[r, 1:])
        averages[r], rests[r], scales[r] = average, away, squares
    if CLUSTER > 1:
        if t < CLUSTER:
            for r in range(ROWS):
                ptx.cluster_store(parts, (r, 0, rank), t, of_block)
                ptx.cluster_store(parts, (r, 1, rank), t, averages[r])
                ptx.cluster_store(parts, (r, 2, rank), t, rests[r])
                ptx.cluster_store(parts, (r, 3, rank), t, scales[r])
        ptx.cluster_sync()
    for r in range(ROWS):
        average, away, squares = averages[r], rests[r], scales[r]
        if CLUSTER > 1:
            average = parts[r, 1, 0]
            away = squares = np.float32(0)
            for block in range(CLUSTER):
                squares += parts[r, 3, block]
                if CENTRED:
                    n, apart = parts[r, 0, block], parts[r, 1, block] - average
                    away += n * apart + parts[r, 2, block]
                    squares += apart * (n * apart + np.float32(2) * parts[r, 2, block])
        rest = np.float32(0)
        if CENTRED:
            rest = away * inverse
            squares -= rest * rest * values
            squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
        averages[r], rests[r], scales[r] = average, rest, np.float32(1) / sqrt(squares * inverse + eps)
        if rank == 0 and t == 0:
            row = min(np.uint32(start + r), last)
            rstd[row] = scales[r]
            if CENTRED:
                mean[row] = average + rest

    for k in range(PIECES):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_float32(weight, first + i, of_column[0])
            if CENTRED:
                load_float32(bias, first + i, of_column[1])
            for r in range(ROWS):
                for e in range(WIDTH):
                    value = (own[r * PIECES + k, e] - averages[r] - rests[r]) * scales[r] * of_column[0, e]
                    if CENTRED:
                        value += of_column[1, e]
                    own[r * PIECES + k, e] = value
                store(y, min(np.uint32(start + r), last), first + i, own[r * PIECES + k])


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Blocks of a cluster, threads of a block, and rows that it takes at once."""
    for most_threads, rows in SHAPES:
        for blocks in SIZES:
            pieces = -(-columns // (width * blocks))  # of a block
            threads = WARP * -(-pieces * width // (COLUMNS * WARP))
            if threads <= most_threads:
                return blocks, threads, rows
    most_threads, _ = SHAPES[-1]
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(SIZES) * most_threads * COLUMNS}")


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """y and the statistics of each row; RMS norm has neither bias nor mean, and its kernel looks at none."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    at_once = vector_width(x, weight, bias, y)
    blocks, threads, rows = geometry(problem.columns, at_once)
    constants = {"PIECES": COLUMNS // at_once, "ROWS": rows, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    bounds = threads, max(1, SM_THREADS // threads // (1 if at_once > 1 else 2))
    kernel = specialise_vectors(clusters, format.dtype, at_once, bounds, blocks, **constants)
    arrays = kernel_view(x, at_once), weight, bias, kernel_view(y, at_once), mean, rstd
    return [Launch(kernel, -(-problem.rows // rows) * blocks, threads, (*arrays, np.float32(problem.eps)))]
