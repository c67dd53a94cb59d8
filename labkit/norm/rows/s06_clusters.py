"""A cluster of blocks shares rows that exceed one block; registers hold up to four in their memory format.

A row of 64k float32 is 256 KB, as much as all registers of an SM. A cluster of 8 blocks on neighbouring SMs keeps 8k
values of it per block. The blocks exchange their statistics through distributed shared memory, with one cluster
barrier. Another cluster barrier, at the start, ensures that all blocks run; the loads hide it. Such a row also needs
half a megabyte of weights and biases from L2: a block that has the same columns of two rows loads them once for both.
In 16 bits a register holds two values, and a block has four rows. None is persistent: before its next barrier it would
have to wait until all its stores have arrived.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       clusters: read, written
    2       passes in all

Limited by memory in float32, and in 16 bits by instructions and barriers too. The sums of all blocks are around the
mean of the first block. Its squared distance from the row's mean is at most n variances for n blocks, so that little
precision is lost.

Parts: `block_all_sums` of `labkit.parts.sums`; `load_float32`, `load_raw`, `store`, `unpack` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load_float32, load_raw, store, unpack

LARGEST = (1, 131072), (1, 131071)  # also tested: the most work per thread
CENTRED = True  # False for RMS norm
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # type of a register
WORDS = WIDTH if ELEMENT is np.float32 or WIDTH == 1 else WIDTH // 2  # registers per vector
VECTORS, COLUMNS = 4, 16  # vectors and values per thread and row
ROWS = 2  # per cluster
SLOTS = ROWS * VECTORS
MAX_WORDS = 32  # registers of a thread that hold rows
FIELDS = 4  # that blocks exchange: number of values, mean, sums of deviations and of squares around it
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
USUAL_THREADS, MAX_THREADS = 512, 1024  # per block, usually and for wide rows
SM_THREADS = 1024  # with 64 registers each
SUMS, PARTIALS = 2 * ROWS, 3 * ROWS


@cuda.jit
def clusters(x, weight, bias, y, mean, rstd, eps):
    x_words = cuda.local.array((SLOTS, WORDS), WORD)
    x_reg = cuda.local.array(WIDTH, np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    averages = cuda.local.array(ROWS, np.float32)
    sums = cuda.local.array(SUMS, np.float32)  # of deviations from the averages, and of their squares
    warp_partials = cuda.shared.array((PARTIALS, MAX_WARPS), np.float32)
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
    for r in range(ROWS):  # if some are missing, the last row several times
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load_raw(x, min(np.uint32(start + r), last), first + i, x_words[r * VECTORS + k])
    if CLUSTER > 1:
        ptx.cluster_sync()
    # -- sums of the block --
    for r in range(ROWS):
        averages[r] = sums[r] = sums[ROWS + r] = np.float32(0)
    if CENTRED:
        for r in range(ROWS):
            for k in range(VECTORS):
                if np.uint32(WIDTH * (k * threads + t)) < count:
                    unpack(x_words[r * VECTORS + k], x_reg)
                    for e in range(WIDTH):
                        averages[r] += x_reg[e]
        block_all_sums(averages, warp_partials, ROWS)
    for r in range(ROWS):
        averages[r] *= inv_block_values
        for k in range(VECTORS):
            if np.uint32(WIDTH * (k * threads + t)) < count:
                unpack(x_words[r * VECTORS + k], x_reg)
                for e in range(WIDTH):
                    value = x_reg[e] - averages[r]
                    sums[r] += value
                    sums[ROWS + r] += value * value
    block_all_sums(sums, warp_partials[ROWS:], SUMS)
    # -- exchange within the cluster --
    if CLUSTER > 1:
        if t < CLUSTER:
            for r in range(ROWS):
                ptx.cluster_store(block_partials, (r, 0, rank), t, num_block_values)
                ptx.cluster_store(block_partials, (r, 1, rank), t, averages[r])
                ptx.cluster_store(block_partials, (r, 2, rank), t, sums[r])
                ptx.cluster_store(block_partials, (r, 3, rank), t, sums[ROWS + r])
        ptx.cluster_sync()
    # -- statistics of the rows --
    for r in range(ROWS):
        average, deviations, squares = averages[r], sums[r], sums[ROWS + r]
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
        scale = np.float32(1) / sqrt(squares * inv_columns + eps)
        averages[r], sums[r], sums[ROWS + r] = average, correction, scale
        if rank == 0 and t == 0:
            row = min(np.uint32(start + r), last)
            rstd[row] = scale
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
                unpack(x_words[r * VECTORS + k], x_reg)
                for e in range(WIDTH):
                    x_reg[e] = (x_reg[e] - averages[r] - sums[r]) * sums[ROWS + r] * weight_bias[0, e]
                    if CENTRED:
                        x_reg[e] += weight_bias[1, e]
                store(y, min(np.uint32(start + r), last), first + i, x_reg)


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return blocks per cluster, and threads per block."""
    for max_threads in (USUAL_THREADS, MAX_THREADS):
        for blocks in CLUSTER_SIZES:
            vectors = -(-columns // (width * blocks))  # per block
            threads = WARP * -(-vectors * width // (COLUMNS * WARP))
            if threads <= max_threads:
                return blocks, threads
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(CLUSTER_SIZES) * MAX_THREADS * COLUMNS}")


def rows_per_cluster(problem, blocks: int, itemsize: int, width: int) -> int:
    """Return as many rows as registers hold, but no more than leave a block for each SM."""
    words = COLUMNS if width == 1 else COLUMNS * itemsize // FP32.itemsize  # per thread and row
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(MAX_WORDS // words, -(-problem.rows * blocks // sms))


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    blocks, threads = geometry(problem.columns, width)
    rows = rows_per_cluster(problem, blocks, format.itemsize, width)
    constants = {"VECTORS": COLUMNS // width, "ROWS": rows, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    bounds = threads, SM_THREADS // threads
    kernel = specialise_vectors(clusters, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, -(-problem.rows // rows) * blocks, threads, (*arrays, np.float32(problem.eps)))]
