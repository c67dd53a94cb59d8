"""A row stays in shared memory, and each written value makes room for one of the block's next row.

Shared memory keeps rows that are too wide for registers: an SM has 227 KB of it, and asynchronous copies into it need
no registers. Blocks are persistent. A thread that has written a vector of y immediately copies the next row's vector
into the same slot, which no other thread accesses: loads and stores overlap even if an SM has room for only one block.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       overlapped: read, written
    2       passes in all

Limited by waiting between two rows. If registers suffice, `s02_on_chip` is faster: its blocks end, and the next block
has already requested its row. Rows of more than 226 KB are for `s06_clusters`.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `copy_async`, `load_float32`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import copy_async, load_float32, load_shared, store

CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
ELEMENT = np.float32  # element type of rows
MIN_VECTORS = 4  # vectors per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
SM_BYTES, MAX_BYTES = 227 * 1024, 226 * 1024  # of shared memory per SM, and per row
SM_THREADS = 2048
STATIC_BYTES = 2048  # of shared memory per block, besides the row


@cuda.jit
def overlapped(x, weight, bias, y, mean, rstd, eps):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)
    x_reg = cuda.local.array(WIDTH, np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, 3, MAX_WARPS), np.float32)  # two buffers, used alternately by rows
    t, threads, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.gridDim.x)
    columns = np.uint32(weight.shape[0])
    vectors, num_values = np.uint32(columns // WIDTH), np.float32(columns)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    for v in range(t, vectors, threads):
        copy_async(smem, WIDTH * v, x, np.uint32(cuda.blockIdx.x), WIDTH * v)
    ptx.cp_async_commit()

    phase = 0
    for row in range(cuda.blockIdx.x, x.shape[0], blocks):
        ptx.cp_async_wait(0)
        row_sum = deviations = squares = average = correction = np.float32(0)
        if CENTRED:
            for v in range(t, vectors, threads):
                load_shared(smem, WIDTH * v, x_reg)
                for e in range(WIDTH):
                    row_sum += x_reg[e]
            average = block_all_sum(row_sum, warp_partials[phase, 0]) * inv_columns
        for v in range(t, vectors, threads):
            load_shared(smem, WIDTH * v, x_reg)
            for e in range(WIDTH):
                value = x_reg[e] - average
                deviations += value
                squares += value * value
        deviations, squares = block_all_sum2(deviations, squares, warp_partials[phase, 1:])
        if CENTRED:
            correction = deviations * inv_columns
            squares -= correction * correction * num_values
            squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
        scale = np.float32(1) / sqrt(squares * inv_columns + eps)
        phase = 1 - phase
        if t == 0:
            rstd[row] = scale
            if CENTRED:
                mean[row] = average + correction
        for v in range(t, vectors, threads):
            i = np.uint32(WIDTH * v)
            load_shared(smem, i, x_reg)
            load_float32(weight, i, weight_bias[0])
            if CENTRED:
                load_float32(bias, i, weight_bias[1])
            for e in range(WIDTH):
                x_reg[e] = (x_reg[e] - average - correction) * scale * weight_bias[0, e]
                if CENTRED:
                    x_reg[e] += weight_bias[1, e]
            store(y, np.uint32(row), i, x_reg)
            if row + blocks < x.shape[0]:
                copy_async(smem, i, x, np.uint32(row + blocks), i)
        ptx.cp_async_commit()


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Return the number of resident blocks, threads per block, and bytes of a row."""
    smem_bytes = problem.columns * itemsize
    if smem_bytes > MAX_BYTES - STATIC_BYTES:
        limit = (MAX_BYTES - STATIC_BYTES) // itemsize
        raise TooLarge(f"a row has {problem.columns} values, and a block keeps {limit} in shared memory")
    warps = max(1, min(MAX_WARPS, problem.columns // (width * MIN_VECTORS * WARP)))
    blocks_per_sm = min(SM_BYTES // (smem_bytes + STATIC_BYTES), SM_THREADS // (WARP * warps))
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(problem.rows, sms * blocks_per_sm), WARP * warps, smem_bytes


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    blocks, threads, smem_bytes = geometry(problem, format.itemsize, width)
    kernel = specialise_vectors(overlapped, format.dtype, width, bounds=threads, CENTRED=problem.is_centred)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, blocks, threads, (*arrays, np.float32(problem.eps)), smem_bytes)]
