"""A cluster of blocks shares a row that exceeds one block, and processes two rows at once.

A row of 64k float32 is 256 KB, as much as all registers of an SM. A cluster of 8 blocks on neighbouring SMs keeps 8k
values of it per block. The blocks exchange their statistics through distributed shared memory, with one cluster
barrier. Another cluster barrier, at the start, ensures that all blocks run; the loads hide it. Such a row also needs
half a megabyte of weights and biases from L2: a block that has the same columns of two rows loads them once for both.
Two blocks fit into an SM. None is persistent: before its next barrier it would have to wait until all its stores have
arrived.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       clusters: read, written
    2       passes in all

Limited by memory in float32. In bfloat16, where a row has half the bytes, instructions and barriers are the limit:
`s04_overlapped` is faster for rows that fit into one block. The sums of all blocks are around the mean of the first
block. Its squared distance from the row's mean is at most n variances for n blocks, so that little precision is lost.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store

LARGEST = (1, 131072), (1, 131071)  # also tested: the most work per thread
CENTRED = True  # False for RMS norm
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
VECTORS = 4  # vectors per thread and row
COLUMNS = 16  # per thread
ROWS = 2  # per cluster
SLOTS = ROWS * VECTORS
SHAPES = (512, 2), (1024, 1)  # most threads of a block, and rows of its cluster
FIELDS = 4  # that blocks exchange: number of values, mean, sums of deviations and of squares around it
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_THREADS = 1024  # with 64 registers each; threads that load one value at a time need more


@cuda.jit
def clusters(x, weight, bias, y, mean, rstd, eps):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    averages = cuda.local.array(ROWS, np.float32)
    corrections = cuda.local.array(ROWS, np.float32)
    scales = cuda.local.array(ROWS, np.float32)
    warp_partials = cuda.shared.array((ROWS, 3, MAX_WARPS), np.float32)
    block_partials = cuda.shared.array((ROWS, FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    start = np.uint32(cuda.blockIdx.x // CLUSTER * ROWS)
    last, columns = np.uint32(x.shape[0] - 1), np.uint32(weight.shape[0])
    columns_per_block = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)
    first = min(rank * columns_per_block, columns)
    count = np.uint32(min(first + columns_per_block, columns) - first)
    num_values, num_block_values = np.float32(columns), np.float32(count)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    inv_block_values = np.float32(1) / max(num_block_values, np.float32(1))

    # -- load the rows --
    for r in range(ROWS):  # if their number is odd, the last row twice
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load(x, min(np.uint32(start + r), last), first + i, x_reg[r * VECTORS + k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    # -- sums of the block --
    for r in range(ROWS):
        row_sum = deviations = squares = average = np.float32(0)
        if CENTRED:
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * threads + t)) < count:
                    for e in range(WIDTH):
                        row_sum += x_reg[r * VECTORS + k, e]
            average = block_all_sum(row_sum, warp_partials[r, 0]) * inv_block_values
        for k in range(VECTORS):
            if np.uint32(WIDTH * (k * threads + t)) < count:
                for e in range(WIDTH):
                    value = x_reg[r * VECTORS + k, e] - average
                    deviations += value
                    squares += value * value
        deviations, squares = block_all_sum2(deviations, squares, warp_partials[r, 1:])
        averages[r], corrections[r], scales[r] = average, deviations, squares
    # -- exchange within the cluster --
    if CLUSTER > 1:
        if t < CLUSTER:
            for r in range(ROWS):
                ptx.cluster_store(block_partials, (r, 0, rank), t, num_block_values)
                ptx.cluster_store(block_partials, (r, 1, rank), t, averages[r])
                ptx.cluster_store(block_partials, (r, 2, rank), t, corrections[r])
                ptx.cluster_store(block_partials, (r, 3, rank), t, scales[r])
        ptx.cluster_sync()
    # -- statistics of the rows --
    for r in range(ROWS):
        average, deviations, squares = averages[r], corrections[r], scales[r]
        if CLUSTER > 1:
            average = block_partials[r, 1, 0]
            deviations = squares = np.float32(0)
            for block in range(CLUSTER):
                squares += block_partials[r, 3, block]
                if CENTRED:
                    n, delta = block_partials[r, 0, block], block_partials[r, 1, block] - average
                    deviations += n * delta + block_partials[r, 2, block]
                    squares += delta * (n * delta + np.float32(2) * block_partials[r, 2, block])
        correction = np.float32(0)
        if CENTRED:
            correction = deviations * inv_columns
            squares -= correction * correction * num_values
            squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
        averages[r], corrections[r], scales[r] = average, correction, np.float32(1) / sqrt(squares * inv_columns + eps)
        if rank == 0 and t == 0:
            row = min(np.uint32(start + r), last)
            rstd[row] = scales[r]
            if CENTRED:
                mean[row] = average + correction

    # -- write y --
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_float32(weight, first + i, weight_bias[0])
            if CENTRED:
                load_float32(bias, first + i, weight_bias[1])
            for r in range(ROWS):
                for e in range(WIDTH):
                    value = (x_reg[r * VECTORS + k, e] - averages[r] - corrections[r]) * scales[r] * weight_bias[0, e]
                    if CENTRED:
                        value += weight_bias[1, e]
                    x_reg[r * VECTORS + k, e] = value
                store(y, min(np.uint32(start + r), last), first + i, x_reg[r * VECTORS + k])


def geometry(columns: int, width: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and rows per cluster."""
    for max_threads, rows in SHAPES:
        for blocks in CLUSTER_SIZES:
            vectors = -(-columns // (width * blocks))  # per block
            threads = WARP * -(-vectors * width // (COLUMNS * WARP))
            if threads <= max_threads:
                return blocks, threads, rows
    max_threads, _ = SHAPES[-1]
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(CLUSTER_SIZES) * max_threads * COLUMNS}")


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    blocks, threads, rows = geometry(problem.columns, width)
    constants = {"VECTORS": COLUMNS // width, "ROWS": rows, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    bounds = threads, max(1, SM_THREADS // threads // (1 if width > 1 else 2))
    kernel = specialise_vectors(clusters, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, -(-problem.rows // rows) * blocks, threads, (*arrays, np.float32(problem.eps)))]
