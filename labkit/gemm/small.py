"""Batches of small products of 16-bit formats on tensor cores: each warp loads the fragments of 32 x 32 outputs itself.

The library's kernel has tiles of at least 64 rows, and one tile at a time on an SM: a product of 32 x 32 x 32 leaves
most of both idle. Here a warp has a tile to itself, and an SM has many warps, which hide the latency of their loads.
Nothing is shared, so there is neither shared memory nor a barrier. `mma` lets the kernel choose which rows, columns and
values of k its fragments stand for, as long as both operands agree: a lane has pairs of rows and four neighbouring k,
which it loads at once from an operand that is contiguous along either axis.

Costs, for sides that are multiples of 32 and operands of whole 8-byte pieces along k:

    K / 128      loads of 8 bytes per output and operand
    K / 2048     `mma` per output

Limited by the latency of the loads. Compute capability 8.0.
"""

from functools import cache
from math import ceil
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import address_of
from labkit.arrays.views import as_batch, as_bits, as_strided, flatten_memory, transpose
from labkit.formats import BF16, FP16, Format
from labkit.gemm.early import await_previous, is_early, previous_launch
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

FORMATS = BF16, FP16
FORMAT = ptx.BF16
TILE = 32  # rows and columns of a warp's outputs
STEP = 32  # values of k whose fragments are in flight at a time
WARPS = 4  # of a block, independent of each other
BLOCKS = 4  # of an SM
THREADS = 32 * WARPS
MI, NI, KI = TILE // 16, TILE // 8, STEP // 16  # fragments along each axis
SINGLE, ALONG_K, ALONG_ROWS = range(3)  # a load's elements: one, four along k, or two along the rows
LEFT_LOAD = RIGHT_LOAD = SINGLE
WIDE = False  # whether four neighbours of the result are stored at once
ADDS = False  # whether an array is added, times beta
LOW, HIGH = np.uint32(0xFFFF), np.uint32(0xFFFF0000)

START_CYCLES = 4000  # fitted to times on an H200, like the others
TILE_CYCLES = 280  # of an SM, besides those of its steps
STEP_CYCLES = 260
LATENCY_CYCLES = 700  # of a step's loads


class Operand(NamedTuple):
    """A batch of matrices as one vector, of elements or of pairs; strides count its elements."""

    array: object
    first: np.int64
    batch: np.int64
    row: np.int64
    k: np.int64
    rows: np.uint32


class Output(NamedTuple):
    """Result as one vector, of elements or, if WIDE, of pairs, with its strides; factors; what beta multiplies."""

    array: object
    first: np.int64
    batch: np.int64
    row: np.int64
    col: np.int64
    rows: np.uint32
    cols: np.uint32
    alpha: np.float32
    beta: np.float32
    added: object


class Sizes(NamedTuple):
    """Rows and columns of tiles, tiles of the whole batch, and length of k."""

    rows: np.uint32
    cols: np.uint32
    tiles: np.uint32
    K: np.uint32


@cuda.jit(device=True)
def load_element(X, place, row, k, K):
    """Return an element, or 0 outside of the matrix."""
    if row < X.rows and k < K:
        return np.uint32(X.array[place + np.int64(row) * X.row + np.int64(k) * X.k])
    return np.uint32(0)


@cuda.jit(device=True)
def load_singles(X, place, row, k, K):
    """Return the elements of `row` and the next row at four k, two k in a word; zeros outside of the matrix."""
    words = cuda.local.array((2, 2), np.uint32)
    for r in range(2):
        for n in range(2):
            y, x = np.uint32(row + r), np.uint32(k + 2 * n)
            words[r, n] = load_element(X, place, y, x, K) | load_element(X, place, y, np.uint32(x + 1), K) << 16
    return words[0, 0], words[0, 1], words[1, 0], words[1, 1]


@cuda.jit(device=True)
def load_along_k(X, place, row, k, K):
    """Do the same for a K-major operand as pairs along k."""
    next_row, begin = np.uint32(row + 1), place + np.int64(k // 2)
    a = b = c = d = np.uint32(0)
    if k < K and row < X.rows:
        a, b = ptx.load2(X.array, begin + np.int64(row) * X.row)
    if k < K and next_row < X.rows:
        c, d = ptx.load2(X.array, begin + np.int64(next_row) * X.row)
    return a, b, c, d


@cuda.jit(device=True)
def load_along_rows(X, place, row, k, K):
    """Do the same for an MN-major operand as pairs along the rows."""
    pairs, begin = cuda.local.array(4, np.uint32), place + np.int64(row // 2)
    for n in range(4):
        pairs[n] = X.array[begin + np.int64(k + n) * X.k] if row < X.rows and k + n < K else np.uint32(0)
    a, b, c, d = pairs[0], pairs[1], pairs[2], pairs[3]
    return a & LOW | b << 16, c & LOW | d << 16, a >> 16 | b & HIGH, c >> 16 | d & HIGH


@cuda.jit(device=True)
def load_left(X, place, row, k, K):
    if LEFT_LOAD == ALONG_K:
        return load_along_k(X, place, row, k, K)
    if LEFT_LOAD == ALONG_ROWS:
        return load_along_rows(X, place, row, k, K)
    return load_singles(X, place, row, k, K)


@cuda.jit(device=True)
def load_right(X, place, row, k, K):
    if RIGHT_LOAD == ALONG_K:
        return load_along_k(X, place, row, k, K)
    if RIGHT_LOAD == ALONG_ROWS:
        return load_along_rows(X, place, row, k, K)
    return load_singles(X, place, row, k, K)


@cuda.jit(device=True)
def blend(value, output, batch, row, col):
    """Return alpha * value, and where ADDS, plus beta * added."""
    value *= output.alpha
    if ADDS and col < output.cols:  # beyond, nothing is stored
        value += output.beta * ptx.unpack2(np.uint32(output.added[batch, row, col]), FORMAT)[0]
    return value


@cuda.jit(device=True)
def store_four(output, batch, row, col, a, b, c, d):
    """Blend and store four neighbours of a row, as far as they are inside."""
    if row < output.rows and col < output.cols:
        second, third, fourth = np.uint32(col + 1), np.uint32(col + 2), np.uint32(col + 3)
        a, b = blend(a, output, batch, row, col), blend(b, output, batch, row, second)
        c, d = blend(c, output, batch, row, third), blend(d, output, batch, row, fourth)
        low, high = ptx.pack2(a, b, FORMAT), ptx.pack2(c, d, FORMAT)
        place = output.first + np.int64(batch) * output.batch + np.int64(row) * output.row
        if WIDE:
            ptx.store2(output.array, place + np.int64(col // 2), low, high)
        else:
            place += np.int64(col) * output.col
            output.array[place] = low & LOW
            if second < output.cols:
                output.array[place + output.col] = low >> 16
            if third < output.cols:
                output.array[place + 2 * output.col] = high & LOW
            if fourth < output.cols:
                output.array[place + 3 * output.col] = high >> 16


@cuda.jit(launch_bounds=(THREADS, BLOCKS))
def small(left, right, sizes, output):
    acc = cuda.local.array((MI, NI, 4), np.float32)
    a = cuda.local.array((KI, MI, 4), np.uint32)
    b = cuda.local.array((KI, NI, 2), np.uint32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    item = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + warp)
    tiles_of_one = np.uint32(sizes.rows * sizes.cols)
    batch = np.uint32(item // tiles_of_one)
    tile_row, tile_col = tile_coordinates(item - batch * tiles_of_one, sizes.rows, sizes.cols)
    pair, four = lane // 4 * 2, lane % 4 * 4  # the lane's rows and columns, and its k, in each fragment
    top, first_col = np.uint32(tile_row * TILE), np.uint32(tile_col * TILE)
    left_place = left.first + np.int64(batch) * left.batch
    right_place = right.first + np.int64(batch) * right.batch
    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                acc[i, j, n] = 0
    await_previous()
    if item < sizes.tiles:
        for start in range(0, sizes.K, STEP):
            for s in range(KI):
                k = np.uint32(start + s * 16 + four)
                for i in range(MI):
                    row = np.uint32(top + i * 16 + pair)
                    a[s, i, 0], a[s, i, 2], a[s, i, 1], a[s, i, 3] = load_left(left, left_place, row, k, sizes.K)
                for j in range(0, NI, 2):
                    col = np.uint32(first_col + j * 8 + pair)
                    b[s, j, 0], b[s, j, 1], b[s, j + 1, 0], b[s, j + 1, 1] = load_right(
                        right, right_place, col, k, sizes.K
                    )
            for s in range(KI):
                for i in range(MI):
                    for j in range(NI):
                        fragment = a[s, i, 0], a[s, i, 1], a[s, i, 2], a[s, i, 3]
                        ptx.mma(acc, (i, j, 0), fragment, (b[s, j, 0], b[s, j, 1]), FORMAT)
        for i in range(MI):
            for j in range(0, NI, 2):
                for half in range(2):
                    row = np.uint32(top + i * 16 + pair + half)
                    col = np.uint32(first_col + j * 8 + four)
                    x, y = half * 2, half * 2 + 1
                    even, odd = (acc[i, j, x], acc[i, j, y]), (acc[i, j + 1, x], acc[i, j + 1, y])
                    store_four(output, batch, row, col, even[0], odd[0], even[1], odd[1])


def launches(left, right, C, format: Format, alpha: float, beta: float, added) -> list[Launch]:
    """Return the launch of C = alpha * left @ right.T + beta * added.

    The arrays are matrices or batches of any strides, M x K, N x K and M x N; where C is a batch, an operand may be a
    matrix.
    """
    C, added = as_bits(as_batch(C)), as_bits(as_batch(added))
    (batches, rows, cols), K = C.shape, left.shape[-1]
    left, left_load = _as_operand(as_bits(as_batch(left)))
    right, right_load = _as_operand(as_bits(as_batch(right)))
    row_tiles, col_tiles = ceil(rows / TILE), ceil(cols / TILE)
    tiles = row_tiles * col_tiles * batches
    adds = bool(beta != 0)
    wide = not adds and cols % 4 == 0 and _is_aligned(C, 8)
    vector, first = flatten_memory(C, np.uint32 if wide else None)
    strides = (np.int64(stride // vector.dtype.itemsize) for stride in C.strides)
    numbers = *strides, np.uint32(rows), np.uint32(cols), np.float32(alpha), np.float32(beta)
    output = Output(vector, np.int64(first), *numbers, added if adds else as_strided(vector, (1, 1, 1)))
    kernel = specialise_kernel(format, left_load, right_load, wide, adds, is_early())
    sizes = Sizes(*map(np.uint32, (row_tiles, col_tiles, tiles, K)))
    return [Launch(kernel, ceil(tiles / WARPS), (32, WARPS), (left, right, sizes, output))]


def _as_operand(X) -> tuple[Operand, int]:
    """Return an operand, and how the kernel loads it."""
    _, rows, K = X.shape
    load = SINGLE
    if K % 4 == 0 and _is_aligned(X, 8):
        load = ALONG_K
    elif rows % 2 == 0 and _is_aligned(transpose(X), 4):
        load = ALONG_ROWS
    vector, first = flatten_memory(X, np.uint32 if load != SINGLE else None)
    batch, row, k = (np.int64(stride // vector.dtype.itemsize) for stride in X.strides)
    batch = batch if X.shape[0] > 1 else np.int64(0)  # one matrix may be repeated
    return Operand(vector, np.int64(first), batch, row, k, np.uint32(rows)), load


def _is_aligned(X, size: int) -> bool:
    """Return whether rows are contiguous, and begin at multiples of `size` bytes."""
    *outer, step = X.strides
    return step == X.dtype.itemsize and not any(n % size for n in (address_of(X), *outer))


@cache
def specialise_kernel(format: Format, left_load: int, right_load: int, wide: bool, adds: bool, early: bool):
    """Return the kernel for a format, the arrays' layouts, and launches that begin early."""
    bounded = cuda.jit(launch_bounds=(THREADS, BLOCKS), early=early)(small.py_func)
    if early:
        bounded = specialise(bounded, await_previous=previous_launch)
    constants = {"LEFT_LOAD": left_load, "RIGHT_LOAD": right_load, "WIDE": wide, "ADDS": adds}
    return specialise(bounded, FORMAT=format.number, **constants)


def estimate(M: int, N: int, K: int, batches: int, sms: int, dram: float) -> float:
    """Estimate the cycles of a batch on a GPU of `sms` SMs, with `dram` bytes per cycle from its DRAM."""
    tiles = ceil(M / TILE) * ceil(N / TILE) * batches
    dram_cycles = 2 * batches * (M * K + N * K + M * N) / dram
    steps = ceil(K / STEP)
    busy_cycles = tiles / sms * (TILE_CYCLES + STEP_CYCLES * steps)
    return START_CYCLES + max(dram_cycles, busy_cycles, ceil(tiles / (sms * WARPS * BLOCKS)) * LATENCY_CYCLES * steps)
