"""A row stays in the registers of a block: it is read from memory once, by 16-byte loads.

Each thread keeps up to 32 values, in vectors of 16 bytes, and all its loads are in flight before it sums the first.
Registers replace the second and third read of the previous step.

Costs in passes over memory, each of which reads or writes the matrix once:

    2       on_chip: read, written
    2       passes in all

Limited by memory if several blocks fit into an SM, so that some wait for memory while others sum. A row of 32k values
takes all registers of an SM, and in narrow rows the threads of a block have little work between two barriers:
`s03_warps` has no barrier.

Parts: `block_all_sum`, `block_all_sum2` of `labkit.parts.sums`; `load`, `load_float32`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows import WIDTHS, sizes_of_widths
from labkit.parts.sums import block_all_sum, block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, load_float32, store

BENCHED = sizes_of_widths(*WIDTHS[:-1])  # the sizes that this step accepts
CENTRED = True  # False for RMS norm
WIDTH = 4  # values per vector
VECTORS = 4  # vectors per thread
USUAL_VECTORS, MAX_VALUES = 4, 32  # vectors per thread of a small block, and values per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block


@cuda.jit
def on_chip(x, weight, bias, y, mean, rstd, eps):
    x_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    weight_bias = cuda.local.array((2, WIDTH), np.float32)
    warp_partials = cuda.shared.array((3, MAX_WARPS), np.float32)
    row, t, threads = np.uint32(cuda.blockIdx.x), np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    columns = np.uint32(weight.shape[0])
    num_values = np.float32(columns)
    inv_columns = np.float32(1) / num_values  # a division takes some ten instructions
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load(x, row, i, x_reg[k])
    row_sum = deviations = squares = average = correction = np.float32(0)
    if CENTRED:
        for k in range(VECTORS):
            if np.uint32(WIDTH * (k * threads + t)) < columns:
                for e in range(WIDTH):
                    row_sum += x_reg[k, e]
        average = block_all_sum(row_sum, warp_partials[0]) * inv_columns
    for k in range(VECTORS):
        if np.uint32(WIDTH * (k * threads + t)) < columns:
            for e in range(WIDTH):
                x_reg[k, e] -= average
                deviations += x_reg[k, e]
                squares += x_reg[k, e] * x_reg[k, e]
    deviations, squares = block_all_sum2(deviations, squares, warp_partials[1:])
    if CENTRED:
        correction = deviations * inv_columns
        squares -= correction * correction * num_values
        squares = np.float32(0) if squares < np.float32(0) else squares  # a NaN is not below zero
    scale = np.float32(1) / sqrt(squares * inv_columns + eps)
    if t == 0:
        rstd[row] = scale
        if CENTRED:
            mean[row] = average + correction
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < columns:
            load_float32(weight, i, weight_bias[0])
            if CENTRED:
                load_float32(bias, i, weight_bias[1])
            for e in range(WIDTH):
                x_reg[k, e] = (x_reg[k, e] - correction) * scale * weight_bias[0, e]
                if CENTRED:
                    x_reg[k, e] += weight_bias[1, e]
            store(y, row, i, x_reg[k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Return vectors per thread, the usual number or more for wide rows, and threads per block."""
    vectors = -(-columns // width)
    vectors_per_thread = USUAL_VECTORS
    while vectors_per_thread * WARP * MAX_WARPS < vectors:
        vectors_per_thread *= 2
    if vectors_per_thread * width > MAX_VALUES:
        raise TooLarge(f"a row has {columns} values, and a block keeps {WARP * MAX_WARPS * MAX_VALUES} in registers")
    return vectors_per_thread, WARP * -(-vectors // (vectors_per_thread * WARP))


def launches(x, weight, bias, y, mean, rstd, problem, format=FP32):
    """Return the launch for y and the statistics; RMS norm has neither bias nor mean, and other arrays replace them."""
    problem.check(x, weight, bias, y, mean, rstd, dtype=format.dtype)
    bias, mean = (bias, mean) if problem.is_centred else (weight, rstd)
    width = vector_width(x, weight, bias, y)
    vectors, threads = geometry(problem.columns, width)
    constants = {"VECTORS": vectors, "CENTRED": problem.is_centred}
    kernel = specialise_vectors(on_chip, format.dtype, width, bounds=threads, **constants)
    arrays = word_view(x, width), weight, bias, word_view(y, width), mean, rstd
    return [Launch(kernel, problem.rows, threads, (*arrays, np.float32(problem.eps)))]
