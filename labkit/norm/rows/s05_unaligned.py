"""Rows of an odd width: aligned vectors inside of a row, and single values at its ends.

A row of 50257 bfloat16 begins anywhere between two multiples of 8 bytes, and its neighbour elsewhere. Up to 3 values
precede its first aligned vector of four, and up to 3 follow its last: one thread each loads, keeps and stores these.
All others have vectors, as if the row began there. Some lanes of a warp share narrow rows, and a cluster of blocks wide
ones, as in `s06_clusters`. Such rows are four apart: they begin at the same alignment, so that a thread has the same
columns of all, and loads their weights and biases once, one at a time.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       unaligned: read, written
    2       passes in all

Limited by memory, and in 16 bits by the loads of weights.

Parts: `block_all_sums`, `group_all_sum` of `labkit.parts.sums`; `load_one`, `load_raw`, `store`, `store_one`, `unpack`
of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import EXAMPLES, LONG, ODD, sizes_of_widths
from labkit.parts.sums import block_all_sums, group_all_sum
from labkit.parts.vector_widths import inner_width, specialise_vectors, word_view
from labkit.parts.vectors import load_one, load_raw, store, store_one, unpack

EXAMPLES = (*EXAMPLES, (5, 2, "rms", 0.1), (9, 333, "layer"))  # of all alignments, and a row without a whole vector
BENCHED = (*sizes_of_widths(*ODD), *LONG)  # timed sizes
COMPARED = BENCHED[1]  # the timed size by which steps are compared
LARGEST = (1, 131072), (1, 65536)  # also tested: the most work per thread
CENTRED = True  # False for RMS norm
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
WORD = np.float32 if ELEMENT is np.float32 else np.uint32  # type of a register
WORDS = WIDTH if ELEMENT is np.float32 or WIDTH == 1 else WIDTH // 2  # registers per vector
VECTORS, COLUMNS = 4, 16  # vectors and values per thread and row
ROWS, MAX_ROWS = 2, 4  # per team
SLOTS = ROWS * VECTORS
MAX_WORDS = 32  # registers of a thread that hold rows
FIELDS = 4  # that blocks exchange: number of values, mean, sums of deviations and of squares around it
TEAMS = 1  # per block, each with rows of its own
LANES, MIN_LANES = 32, 8  # of a team within a warp: at least one for each single value
LANE_VALUES = 32  # of a row, of such a team
WARP, WARPS, MAX_WARPS = 32, 8, 32  # threads per warp; warps per block of several teams, and the most
USUAL_THREADS, MAX_THREADS = 512, 1024  # per block, usually and for wide rows
SM_THREADS = 1024  # with 64 registers each
SUMS, PARTIALS = 2 * ROWS, 3 * ROWS


@cuda.jit(device=True)
def team_all_sums(values, warp_sums, count):
    """Replace values of each thread by their sums over its team: lanes of a warp, or the block."""
    if TEAMS == 1:
        block_all_sums(values, warp_sums, count)
    else:
        for i in range(count):
            values[i] = group_all_sum(values[i], LANES)


@cuda.jit
def unaligned(x, weight, bias, y, mean, rstd, eps):
    x_words = cuda.local.array((SLOTS, WORDS), WORD)
    x_reg = cuda.local.array(WIDTH, np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    singles = cuda.local.array(ROWS, np.float32)
    averages = cuda.local.array(ROWS, np.float32)
    sums = cuda.local.array(SUMS, np.float32)  # of deviations from the averages, and of their squares
    warp_partials = cuda.shared.array((PARTIALS, MAX_WARPS), np.float32)
    block_partials = cuda.shared.array((ROWS, FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    team = np.uint32(cuda.blockIdx.x // CLUSTER)
    if TEAMS > 1:
        team, t, threads = np.uint32(team * TEAMS + t // LANES), np.uint32(t % LANES), np.uint32(LANES)
    rows, columns = np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    start = np.uint32(team // WIDTH * (ROWS * WIDTH) + team % WIDTH)  # and every WIDTH-th row after it
    # -- aligned vectors of a row, shared by the team, and single values at its ends --
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
            if row < rows and v < count:
                load_raw(x, row, first + WIDTH * v, x_words[r * VECTORS + k])
        if row < rows and t < num_singles:
            singles[r] = load_one(x, row, single_i)
    if CLUSTER > 1:
        ptx.cluster_sync()
    # -- sums of the block --
    for r in range(ROWS):
        averages[r], sums[r], sums[ROWS + r] = singles[r], np.float32(0), np.float32(0)
    if CENTRED:
        for r in range(ROWS):
            for k in range(VECTORS):
                if start + r * WIDTH < rows and np.uint32(k * threads + t) < count:
                    unpack(x_words[r * VECTORS + k], x_reg)
                    for e in range(WIDTH):
                        averages[r] += x_reg[e]
        team_all_sums(averages, warp_partials, ROWS)
    for r in range(ROWS):
        averages[r] = averages[r] * inv_block_values if CENTRED else np.float32(0)
        if t < num_singles:
            sums[r] = singles[r] - averages[r]
            sums[ROWS + r] = sums[r] * sums[r]
        for k in range(VECTORS):
            if start + r * WIDTH < rows and np.uint32(k * threads + t) < count:
                unpack(x_words[r * VECTORS + k], x_reg)
                for e in range(WIDTH):
                    value = x_reg[e] - averages[r]
                    sums[r] += value
                    sums[ROWS + r] += value * value
    team_all_sums(sums, warp_partials[ROWS:], SUMS)
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
        scale, row = np.float32(1) / sqrt(squares * inv_columns + eps), np.uint32(start + r * WIDTH)
        averages[r], sums[r], sums[ROWS + r] = average, correction, scale
        if rank == 0 and t == 0 and row < rows:
            rstd[row] = scale
            if CENTRED:
                mean[row] = average + correction

    # -- write y --
    for k in range(VECTORS):
        v = np.uint32(k * threads + t)
        if v < count:
            i = np.uint32(first + WIDTH * v)
            for e in range(WIDTH):
                weight_bias[0, e] = weight[i + e]
                if CENTRED:
                    weight_bias[1, e] = bias[i + e]
            for r in range(ROWS):
                if start + r * WIDTH < rows:
                    unpack(x_words[r * VECTORS + k], x_reg)
                    for e in range(WIDTH):
                        x_reg[e] = (x_reg[e] - averages[r] - sums[r]) * sums[ROWS + r] * weight_bias[0, e]
                        if CENTRED:
                            x_reg[e] += weight_bias[1, e]
                    store(y, np.uint32(start + r * WIDTH), i, x_reg)
    if t < num_singles:
        for r in range(ROWS):
            if start + r * WIDTH < rows:
                value = (singles[r] - averages[r] - sums[r]) * sums[ROWS + r] * weight[single_i]
                if CENTRED:
                    value += bias[single_i]
                store_one(y, np.uint32(start + r * WIDTH), single_i, value)


def geometry(columns: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and teams per block."""
    if columns <= WARP * COLUMNS:
        lanes = max(MIN_LANES, 1 << (-(-columns // LANE_VALUES) - 1).bit_length())
        return 1, WARP * WARPS, WARP * WARPS // lanes
    for max_threads in (USUAL_THREADS, MAX_THREADS):
        for blocks in CLUSTER_SIZES:
            threads = WARP * -(-columns // (blocks * COLUMNS * WARP))
            if threads <= max_threads:
                return blocks, threads, 1
    raise TooLarge(f"a row has {columns} values, and a cluster keeps {max(CLUSTER_SIZES) * MAX_THREADS * COLUMNS}")


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width, (blocks, threads, teams) = inner_width(x, y), geometry(problem.columns)
    vectors = -(-problem.columns * teams // (width * blocks * threads))
    words = vectors * width if width == 1 else vectors * width * format.itemsize // FP32.itemsize  # per row
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    rows = max(1, min(MAX_WORDS // words, MAX_ROWS, -(-problem.rows * blocks // (sms * teams))))
    constants = {"VECTORS": vectors, "ROWS": rows, "TEAMS": teams, "CLUSTER": blocks, "CENTRED": problem.is_centred}
    constants["LANES"] = min(WARP, threads // teams)
    bounds = threads, SM_THREADS // threads
    kernel = specialise_vectors(unaligned, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    all_teams = -(-problem.rows // (rows * width)) * width
    grid = -(-all_teams // teams) * blocks
    return [Launch(kernel, grid, threads, (*arrays, np.float32(problem.eps)))]
