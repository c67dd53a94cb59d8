"""The kernel: a block multiplies a tile of one part of k, in a ring of stages that `cp.async` fills.

Tiles with few outputs per warp leave registers and instructions unused. So every tile that is large enough gives a
thread 16 x 8 outputs, and small tiles are shared by several groups of warps, SLICES: each group takes a part of every
step along k, and at the end their sums are added in shared memory. A product with fewer tiles than the GPU has SMs is
also divided along k into parts, whose sums a second launch adds. Both additions have a fixed order: equal calls give
equal bits. The operands may be contiguous along either axis.

Costs, for sides that are multiples of the tile, and operands aligned to 16 bytes:

    K * (1 / BM + 1 / BN) / 4                    global loads per output
    K * ((1 + 4 / DEPTH) / TM + 1 / TN) / 4      shared loads per output, where SLICES is 1
    STAGES * (BM + BN) * BK * 4                  bytes of shared memory per block, or SLICES * BM * BN * 4 if more

Limited by memory for up to about 16 rows, and by multiply-adds beyond. Compute capability 8.0.
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.early import await_previous
from labkit.gemm.simt.constants import (
    ADDS,
    BK,
    BM,
    BN,
    DEPTH,
    LANES_X,
    LANES_Y,
    LEFT_MAJOR,
    LEFT_SHAPE,
    LEFT_WIDTH,
    OUTPUT_WIDTH,
    PENDING,
    RIGHT_BYTE,
    RIGHT_MAJOR,
    RIGHT_SHAPE,
    RIGHT_WIDTH,
    SLICES,
    STAGES,
    THREADS,
    TM,
    TN,
    WARPS_X,
    WARPS_Y,
)
from labkit.gemm.simt.tiles import copy_tile, load_right, multiply_eight
from labkit.parts.tile_order import tile_coordinates


class Tiles(NamedTuple):
    """Tiles of a product: numbers of rows and columns of tiles, parts of k, length of k."""

    rows: np.uint32
    cols: np.uint32
    parts: np.uint32
    K: np.uint32


class Output(NamedTuple):
    """Result as one vector: distances of its parts along k, matrices, rows and columns; sizes; factors; addend."""

    array: object
    first: np.int64
    part: np.int64
    batch: np.int64
    row: np.uint32
    col: np.uint32
    rows: np.uint32
    cols: np.uint32
    alpha: np.float32
    beta: np.float32
    added: object


@cuda.jit(device=True)
def blend(value, output, batch, row, col):
    """Return alpha * value, and where ADDS, plus beta * added."""
    value *= output.alpha
    if ADDS and col < output.cols:  # beyond, nothing is stored
        value += output.beta * output.added[batch, row, col]
    return value


@cuda.jit(device=True)
def store_four(output, matrix, batch, row, col, a, b, c, d):
    """Blend and store four neighbours of a row, as far as they are inside."""
    if row < output.rows and col < output.cols:
        second, third, fourth = np.uint32(col + 1), np.uint32(col + 2), np.uint32(col + 3)
        a, b = blend(a, output, batch, row, col), blend(b, output, batch, row, second)
        c, d = blend(c, output, batch, row, third), blend(d, output, batch, row, fourth)
        step = np.uint64(output.col)
        place = matrix + np.uint64(row) * np.uint64(output.row) + np.uint64(col) * step
        if OUTPUT_WIDTH == 4:
            ptx.store4(output.array, place, a, b, c, d)
        else:
            output.array[place] = a
            if second < output.cols:
                output.array[place + step] = b
            if third < output.cols:
                output.array[place + np.uint64(2) * step] = c
            if fourth < output.cols:
                output.array[place + np.uint64(3) * step] = d


@cuda.jit(device=True)
def store_sums(acc, output, matrix, batch, top, left):
    """Store this thread's outputs."""
    for i in range(TM):
        row = top + np.uint32(i // 4 * 4 * LANES_Y + i % 4)
        for j in range(0, TN, 4):
            col = left + np.uint32(j * LANES_X)
            store_four(output, matrix, batch, row, col, acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])


@cuda.jit(device=True)
def add_slices(acc, output, matrix, batch, top, left, group, y, x, t):
    """Add the outputs of all slices in shared memory, in the order of k, and store them."""
    sums = ptx.shared_array(0, (SLICES, BM, BN), np.float32)
    ptx.cp_async_wait(0)
    cuda.syncthreads()  # all have read their tiles, whose memory this is
    for i in range(TM):
        row = y + np.uint32(i // 4 * 4 * LANES_Y + i % 4)
        for j in range(0, TN, 4):
            col = x + np.uint32(j * LANES_X)
            ptx.store4(sums, (group, row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
    cuda.syncthreads()
    for n in range(0, BM * BN, 4 * THREADS):
        i = np.uint32(n + 4 * t)
        if BM * BN % (4 * THREADS) == 0 or i < BM * BN:
            row, col = np.uint32(i // BN), np.uint32(i % BN)
            a, b, c, d = ptx.load4(sums, (0, row, col))
            for other in range(1, SLICES):
                e, f, g, h = ptx.load4(sums, (other, row, col))
                a, b, c, d = a + e, b + f, c + g, d + h
            store_four(output, matrix, batch, top + row, left + col, a, b, c, d)


@cuda.jit(launch_bounds=(THREADS, 1))
def simt(left, right, tiles, output):
    left_tile = ptx.shared_array(0, LEFT_SHAPE, np.float32)
    right_tile = ptx.shared_array(RIGHT_BYTE, RIGHT_SHAPE, np.float32)
    acc = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # -- this block's tile, and this thread's outputs --
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    t = np.uint32(warp * 32 + lane)
    item = np.uint32(cuda.blockIdx.x)
    part, item = item % tiles.parts, np.uint32(item // tiles.parts)
    num_tiles = np.uint32(tiles.rows * tiles.cols)
    batch = np.uint32(item // num_tiles)
    tile_row, tile_col = tile_coordinates(item - batch * num_tiles, tiles.rows, tiles.cols)
    m0, n0 = np.uint32(tile_row * BM), np.uint32(tile_col * BN)
    group = np.uint32(warp // (WARPS_Y * WARPS_X))
    lane_y = (lane // 2 % 2 + lane // 16 * 2) % LANES_Y  # two by two, so that pairs of lanes share loads
    lane_x = lane if LANES_Y == 1 else lane % 2 + lane // 4 % (LANES_X // 2) * 2
    y = np.uint32(warp // WARPS_X % WARPS_Y * (LANES_Y * TM) + lane_y * 4)
    x = np.uint32(warp % WARPS_X * (LANES_X * TN) + lane_x * 4)
    first_k = np.uint32(group * DEPTH)
    left_matrix = np.uint64(left.first + np.int64(batch) * left.batch)
    right_matrix = np.uint64(right.first + np.int64(batch) * right.batch)
    matrix = np.uint64(output.first + np.int64(part) * output.part + np.int64(batch) * output.batch)
    steps = np.uint32((tiles.K + BK - 1) // BK)
    begin, end = np.uint32(steps * part // tiles.parts), np.uint32(steps * (part + 1) // tiles.parts)
    end_k = np.uint32(min(tiles.K, end * BK))

    # -- fill the ring --
    await_previous()
    for i in range(TM):
        for j in range(TN):
            acc[i, j] = 0
    for stage in range(STAGES - 1):
        k = np.uint32((begin + stage) * BK)
        copy_tile(left_tile, stage, LEFT_MAJOR, LEFT_WIDTH, LANES_Y, left, left_matrix, m0, k, end_k, t)
        copy_tile(right_tile, stage, RIGHT_MAJOR, RIGHT_WIDTH, LANES_X, right, right_matrix, n0, k, end_k, t)
        ptx.cp_async_commit()
    # -- acc += left @ right.T --
    stage, free = np.uint32(0), np.uint32(STAGES - 1)
    for step in range(begin, end):
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()
        k = np.uint32((step + STAGES - 1) * BK)
        copy_tile(left_tile, free, LEFT_MAJOR, LEFT_WIDTH, LANES_Y, left, left_matrix, m0, k, end_k, t)
        copy_tile(right_tile, free, RIGHT_MAJOR, RIGHT_WIDTH, LANES_X, right, right_matrix, n0, k, end_k, t)
        ptx.cp_async_commit()
        load_right(b, right_tile, stage, x, first_k)
        for i in range(0, DEPTH, 16):
            k = np.uint32(first_k + i)
            following = np.uint32(first_k + (i + 16) % DEPTH)  # wasted in the last iteration, but free of branches
            multiply_eight(acc, left_tile, right_tile, stage, y, x, k, k + np.uint32(8 % DEPTH), b, b_next)
            if DEPTH > 8:
                multiply_eight(acc, left_tile, right_tile, stage, y, x, k + np.uint32(8), following, b, b_next)
        free = stage
        stage = np.uint32(0) if stage == STAGES - 1 else np.uint32(stage + 1)

    # -- store C --
    if SLICES == 1:
        store_sums(acc, output, matrix, batch, m0 + y, n0 + x)
    else:
        add_slices(acc, output, matrix, batch, m0, n0, group, y, x, t)
