"""Rows of an odd width: aligned vectors inside of a row, and single values at its ends.

A row of 50257 bfloat16 begins anywhere between two multiples of 8 bytes, and its neighbour elsewhere. Up to 3 values
precede its first aligned vector of four, and up to 3 follow its last: one thread each loads, keeps and stores these. All
others have vectors, as if the row began there. A cluster of blocks shares a wide row, as in `s05_clusters`. It has two
rows at once, four rows apart: these begin at the same alignment, so that a thread has the same columns of both, and
loads their weights and biases once, one at a time.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       unaligned: read, written
    2       passes in all

Limited by memory, and by the loads of weights. In narrow rows most threads of a warp are idle: these are for `s06_lanes`.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `load`, `load_one`, `store`, `store_one` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import EXAMPLES, ODD, sizes_of_widths
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import inner_width, specialise_vectors, word_view
from labkit.parts.vectors import load, load_one, store, store_one

EXAMPLES = (*EXAMPLES, (5, 2, "rms", 0.1), (9, 333, "layer"))  # of all alignments, and a row without a whole vector
BENCHED = sizes_of_widths(*ODD)  # timed sizes
COMPARED = BENCHED[1]  # the timed size by which steps are compared
LARGEST = (1, 131072), (1, 65536)  # also tested: the most work per thread
CENTRED = True  # False for RMS norm
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
VECTORS, COLUMNS = 4, 16  # vectors and values per thread and row
ROWS = 2  # per cluster
SLOTS = ROWS * VECTORS
SHAPES = (512, 2), (1024, 1)  # most threads of a block, and rows of its cluster
FIELDS = 4  # that blocks exchange: number of values, mean, sums of deviations and of squares around it
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_THREADS = 1024  # with 64 registers each


@cuda.jit
def unaligned(x, weight, bias, y, mean, rstd, eps):
    x_reg = cuda.local.array((SLOTS, WIDTH), np.float32)
    singles = cuda.local.array(ROWS, np.float32)
    averages = cuda.local.array(ROWS, np.float32)
    corrections = cuda.local.array(ROWS, np.float32)
    scales = cuda.local.array(ROWS, np.float32)
    warp_partials = cuda.shared.array((ROWS, 3, MAX_WARPS), np.float32)
    block_partials = cuda.shared.array((ROWS, FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    cluster, rows, columns = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    start = np.uint32(cluster // WIDTH * (ROWS * WIDTH) + cluster % WIDTH)  # and every WIDTH-th row after it
    # -- aligned vectors of a row, shared by the cluster, and single values at its ends --
    head = min(np.uint32(np.uint32(np.uint32(0) - start * columns) % WIDTH), columns)
    vectors = np.uint32((columns - head) // WIDTH)
    vectors_per_block = np.uint32((vectors + CLUSTER - 1) // CLUSTER)
    first = min(rank * vectors_per_block, vectors)
    count = np.uint32(min(first + vectors_per_block, vectors) - first)
    first = np.uint32(head + WIDTH * first)
    num_singles = np.uint32(columns - WIDTH * vectors) if rank == 0 else np.uint32(0)
    single_i = t if t < head else np.uint32(t + WIDTH * vectors)
    num_values, num_block_values = np.float32(columns), np.float32(WIDTH * count + num_singles)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    inv_block_values = np.float32(1) / max(num_block_values, np.float32(1))

    # -- load the rows --
    for r in range(ROWS):
        row, singles[r] = np.uint32(start + r * WIDTH), np.float32(0)
        for k in range(VECTORS):
            v = np.uint32(k * threads + t)
            for e in range(WIDTH):
                x_reg[r * VECTORS + k, e] = np.float32(0)
            if row < rows and v < count:
                load(x, row, first + WIDTH * v, x_reg[r * VECTORS + k])
        if row < rows and t < num_singles:
            singles[r] = load_one(x, row, single_i)
    if CLUSTER > 1:
        ptx.cluster_sync()
    # -- sums of the block --
    for r in range(ROWS):
        row_sum, average = singles[r], np.float32(0)
        if CENTRED:
            for k in range(VECTORS):
                for e in range(WIDTH):
                    row_sum += x_reg[r * VECTORS + k, e]
            average = block_all_sum(row_sum, warp_partials[r, 0]) * inv_block_values
        deviations = squares = np.float32(0)
        if t < num_singles:
            deviations = singles[r] - average
            squares = deviations * deviations
        for k in range(VECTORS):
            if np.uint32(k * threads + t) < count:
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
        row = np.uint32(start + r * WIDTH)
        if rank == 0 and t == 0 and row < rows:
            rstd[row] = scales[r]
            if CENTRED:
                mean[row] = average + correction

    # -- write y --
    for k in range(VECTORS):
        v = np.uint32(k * threads + t)
        if v < count:
            i = np.uint32(first + WIDTH * v)
            for e in range(WIDTH):
                weight_value, bias_value = weight[i + e], np.float32(0)
                if CENTRED:
                    bias_value = bias[i + e]
                for r in range(ROWS):
                    value = (x_reg[r * VECTORS + k, e] - averages[r] - corrections[r]) * scales[r] * weight_value
                    x_reg[r * VECTORS + k, e] = value + bias_value
            for r in range(ROWS):
                if start + r * WIDTH < rows:
                    store(y, np.uint32(start + r * WIDTH), i, x_reg[r * VECTORS + k])
    if t < num_singles:
        for r in range(ROWS):
            if start + r * WIDTH < rows:
                value = (singles[r] - averages[r] - corrections[r]) * scales[r] * weight[single_i]
                if CENTRED:
                    value += bias[single_i]
                store_one(y, np.uint32(start + r * WIDTH), single_i, value)


def geometry(columns: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and rows per cluster."""
    for max_threads, rows in SHAPES:
        for blocks in CLUSTER_SIZES:
            threads = WARP * -(-columns // (blocks * COLUMNS * WARP))
            if threads <= max_threads:
                return blocks, threads, rows
    max_threads, _ = SHAPES[-1]
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(CLUSTER_SIZES) * max_threads * COLUMNS}")


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width, (blocks, threads, rows) = inner_width(x, y), geometry(problem.columns)
    constants = {"VECTORS": COLUMNS // width, "ROWS": rows, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    bounds = threads, max(1, SM_THREADS // threads)
    kernel = specialise_vectors(unaligned, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    clusters = -(-problem.rows // (rows * width)) * width
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, clusters * blocks, threads, (*arrays, np.float32(problem.eps)))]
