"""The gradient of the images is a convolution of the outputs' gradient, or one per remainder of the strides.

Output p uses the pixels p * stride_h + r * dilation_h - top. So pixel h is used by output (h + top - r * dilation_h) /
stride_h, for the taps r that make this an integer. Pixels with the same remainder by stride_h share these taps, and
their outputs are consecutive. Each pair of remainders, of rows and of columns, is a convolution with a stride of 1. Its
images are the gradient of the outputs. Its filters are these taps, rotated by 180 degrees and with C in place of K. Its
outputs are every stride-th pixel.

A first launch gathers these taps in rows of whole 16-byte vectors; no tap is in two of them. The second is
`s04_gathered`, always with the border test, and with an address for its outputs. `fragments` has the product in
registers.

Costs, for C and N * H * W that are multiples of the tile, and KRS too, at strides of 1:

    KRS * (1 / (4 * BN) + 1 / BM)                 global loads per pixel, and fewer at the borders
    2 * (BM + BN) * BK * 4 + 2 * BK * 12          bytes of shared memory per block
    KRS / BK + 1                                  barriers per block
    4 * C * KRS                                   bytes of workspace

Limited as the product is; and with small C, as in a first layer, by empty rows of tiles. Compute capability 8.0.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import round_up_to_vectors
from labkit.arrays.views import flatten, reshape, slice_rows
from labkit.conv.implicit_gemm.fragments import load_rows, multiply, swizzle
from labkit.conv.implicit_gemm.tilings import BITS, COMPARING, WARPS_Y, WN, Tiling, best_tiling
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import BackwardData
from labkit.conv.remainders import Remainder, remainders
from labkit.conv.sizes import Sizes
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.division import Divisor, fast_divide, make_divisor

PROBLEM = BackwardData
ROOFLINE_PROBLEM = 2, 16, 10, 10, 32, 3, 3
BENCHED = batched(128, TABLE_2)  # timed sizes
SUPPORTED = {"result": ("x",), "layout": ("NCHW",)}  # fields that it takes; x: gradient of images
BORDER = COMPARING  # how a copy tests that its pixel is inside the image: BITS of a mask, or COMPARING
OUTSIDE = 2**31  # a row that is in no image, so that the test fails
WM = 64  # rows of a warp's tile, filters; its columns are WN pixels
LANES_Y, LANES_X = 4, 8  # lanes of a warp
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 4
WARPS_X = 4
THREADS = 32 * WARPS_Y * WARPS_X
BM, BN, BK = WM * WARPS_Y, WN * WARPS_X, 32  # tile of a block, with a column per thread, and its step along CRS
A_STEP = THREADS * 4 // BK  # rows of filters that the block copies at once
B_BYTE = 2 * BM * BK * 4  # where the tiles of pixels begin in dynamic shared memory
TABLE_BYTE = B_BYTE + 2 * BK * BN * 4  # where the table of their rows begins: 12 bytes per row
MAX_ELEMENTS = 2**32  # of the outputs' gradient per launch


@cuda.jit(device=True)
def fill_row_table(row_table, buffer, crs, conv):
    """Store the offset of a row's pixels from the corners of their windows, and the data of the border test."""
    c = fast_divide(crs, conv.RS)
    rs = np.uint32(crs - c * conv.RS.value)
    r = fast_divide(rs, conv.S)
    tap_row, tap_col = np.uint32(r * conv.dilation_h), np.uint32((rs - r * conv.S.value) * conv.dilation_w)
    row, exists = crs % BK, crs < conv.CRS
    row_table[buffer, 0, row] = np.uint32((c * conv.H + tap_row) * conv.W + tap_col)
    if BORDER == COMPARING:
        row_table[buffer, 1, row] = tap_row if exists else np.uint32(OUTSIDE)
        row_table[buffer, 2, row] = tap_col
    else:
        row_table[buffer, 1, row] = np.uint32(np.uint32(exists) << rs)


@cuda.jit(device=True)
def make_tap_mask(first_row, first_col, conv):
    """Return a bit for each tap of a window that is inside the image."""
    mask = np.uint32(0)
    for tap in range(conv.RS.value if BORDER == BITS else np.uint32(0)):
        r = fast_divide(np.uint32(tap), conv.S)
        row = np.uint32(first_row + r * conv.dilation_h)
        col = np.uint32(first_col + (np.uint32(tap) - r * conv.S.value) * conv.dilation_w)
        mask = np.uint32(mask | np.uint32(row < conv.H and col < conv.W) << np.uint32(tap))
    return mask


@cuda.jit(device=True)
def copy_filters(A_tile, buffer, w, k0, k_end, start, conv, thread):
    """Start this thread's copies of filters, for BK rows from `start` on."""
    none = np.uint32(0)  # all in 32 bits, to save registers
    row, col = thread // (BK // 4), thread % (BK // 4) * 4
    crs = np.uint32(start + col)
    for i in range(0, BM, A_STEP):
        source = np.uint32(k0 + row + i), crs
        valid = np.uint32(16) if source[0] < k_end and crs < conv.CRS else none
        ptx.cp_async(A_tile, (buffer, row + i, swizzle(row + i, col)), w, source, 16, valid)


@cuda.jit(device=True)
def copy_pixels(B_tile, row_table, buffer, y, corner, first_row, first_col, tap_mask, conv, thread):
    """Start this thread's copies of pixels, a column of BK."""
    offset = cuda.local.array(4, np.uint32)
    tap_row = cuda.local.array(4, np.uint32)  # or bits of taps
    tap_col = cuda.local.array(4, np.uint32)
    for k in range(0, BK, 4):
        offset[0], offset[1], offset[2], offset[3] = ptx.load4(row_table, (buffer, 0, k))
        tap_row[0], tap_row[1], tap_row[2], tap_row[3] = ptx.load4(row_table, (buffer, 1, k))
        if BORDER == COMPARING:
            tap_col[0], tap_col[1], tap_col[2], tap_col[3] = ptx.load4(row_table, (buffer, 2, k))
        for n in range(4):
            if BORDER == COMPARING:
                is_inside = np.uint32(first_row + tap_row[n]) < conv.H and np.uint32(first_col + tap_col[n]) < conv.W
            else:
                is_inside = tap_mask & tap_row[n] != 0
            valid = np.uint32(4) if is_inside else np.uint32(0)
            ptx.cp_async(B_tile, (buffer, k + n, thread), y, np.uint32(corner + offset[n]), 4, valid)


@cuda.jit(launch_bounds=(256, 1))  # or as many threads in smaller blocks
def backward_data(y, w, x, conv, target):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, BN), np.float32)
    row_table = ptx.shared_array(TABLE_BYTE, (2, 3, BK), np.uint32)
    acc = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned: tells the compiler that no index counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- locate the block's filters and this thread's window --
    group = np.uint32(cuda.blockIdx.z)
    k0 = np.uint32(group * conv.K + np.uint32(cuda.blockIdx.y) * np.uint32(BM))  # filter
    k_end = np.uint32(group * conv.K + conv.K)
    thread = np.uint32(warp * 32 + lane)
    npq = min(np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(BN) + thread), np.uint32(conv.NPQ - np.uint32(1)))
    n = fast_divide(npq, conv.PQ)
    pq = np.uint32(npq - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    first_row, first_col = np.uint32(p - conv.top), np.uint32(pq - p * conv.Q.value - conv.left)
    corner = np.uint32(((n * np.uint32(cuda.gridDim.z) + group) * conv.C * conv.H + first_row) * conv.W + first_col)
    tap_mask = make_tap_mask(first_row, first_col, conv)

    # -- clear accumulators, load first tiles --
    for i in range(TM):
        for j in range(TN):
            acc[i, j] = 0
    one, buffer = np.uint32(1), np.uint32(0)
    if thread < 2 * BK:
        fill_row_table(row_table, thread // BK, thread, conv)
    cuda.syncthreads()
    copy_filters(A_tile, buffer, w, k0, k_end, np.uint32(0), conv, thread)
    copy_pixels(B_tile, row_table, buffer, y, corner, first_row, first_col, tap_mask, conv, thread)
    ptx.cp_async_commit()
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2  # each 8 lanes: 2 rows, 4 columns
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(0, conv.CRS, BK):
        # -- load next tiles --
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_filters(A_tile, buffer ^ one, w, k0, k_end, np.uint32(start + BK), conv, thread)
        copy_pixels(B_tile, row_table, buffer ^ one, y, corner, first_row, first_col, tap_mask, conv, thread)
        ptx.cp_async_commit()
        if warp == 0:
            fill_row_table(row_table, buffer, np.uint32(start + 2 * BK + lane), conv)
        # -- acc += A B --
        load_rows(b, B_tile, buffer, 0, x_lane)
        for k in range(0, BK, 16):
            load_rows(b_next, B_tile, buffer, k + 4, x_lane)
            multiply(acc, A_tile, buffer, k, y_lane, b)
            load_rows(b, B_tile, buffer, k + 8, x_lane)
            multiply(acc, A_tile, buffer, k + 4, y_lane, b_next)
            load_rows(b_next, B_tile, buffer, k + 12, x_lane)
            multiply(acc, A_tile, buffer, k + 8, y_lane, b)
            load_rows(b, B_tile, buffer, (k + 16) % BK, x_lane)  # unused in the last iteration: saves a branch
            multiply(acc, A_tile, buffer, k + 12, y_lane, b_next)
        buffer = buffer ^ one

    # -- store outputs --
    for j in range(0, TN, 4):
        npq = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(BN) + x_lane + j * LANES_X)
        if target.whole:  # four neighbours are in one image, and contiguous
            n = fast_divide(npq, conv.PQ)
            pq = np.uint32(npq - n * conv.PQ.value)
            for i in range(TM):
                c = np.uint32(k0 + y_lane + i * LANES_Y)
                if c < k_end and npq < conv.NPQ:
                    ptx.store4(x, (n, c, pq), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
        else:
            for m in range(4):
                n = fast_divide(np.uint32(npq + m), conv.PQ)
                pq = np.uint32(npq + m - n * conv.PQ.value)
                p = fast_divide(pq, conv.Q)
                offset = np.uint32(target.first + p * target.down + (pq - p * conv.Q.value) * target.across)
                for i in range(TM):
                    c = np.uint32(k0 + y_lane + i * LANES_Y)
                    if c < k_end and n < conv.N:
                        x[n, c, offset] = acc[i, j + m]


class Target(NamedTuple):
    """The computed pixels of a channel, all uint32: the first, and the steps down and across to the next.

    `whole` is 1 if these are all pixels, and a multiple of four.
    """

    first: np.uint32
    down: np.uint32
    across: np.uint32
    whole: np.uint32


class Taps(NamedTuple):
    """The first selected tap along rows and columns, and the step to the next: uint32, modulo 2**32.

    `rows` are the channels of a group; all other fields are as in `Sizes`.
    """

    r: np.uint32
    r_step: np.uint32
    s: np.uint32
    s_step: np.uint32
    rows: np.uint32
    K: np.uint32
    KRS: np.uint32
    RS: Divisor
    S: Divisor


@cuda.jit
def gather_taps(w, gathered, taps):
    """gathered[c, krs] = the tap of filter k for channel c, of the same group; padding is zero."""
    krs = np.uint32(cuda.grid(1))
    row = np.uint32(cuda.blockIdx.y)
    k = fast_divide(krs, taps.RS)
    rs = np.uint32(krs - k * taps.RS.value)
    i = fast_divide(rs, taps.S)
    r, s = np.uint32(taps.r + i * taps.r_step), np.uint32(taps.s + (rs - i * taps.S.value) * taps.s_step)
    if krs < gathered.shape[1]:
        group, c = row // taps.rows, row % taps.rows
        gathered[row, krs] = w[group * taps.K + k, c, r, s] if krs < taps.KRS else np.float32(0)


def launches(x, w, y, problem, workspace, tiling=None):
    """x = the gradient of the images, from the outputs' gradient y and filters w, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED)
    outputs = reshape(y, problem.N, problem.K * problem.P * problem.Q)
    images = reshape(x, problem.N, problem.C, problem.H * problem.W)
    sequence = []
    for rows in remainders(problem.H, problem.R, problem.stride_h, problem.top, problem.dilation_h):
        for cols in remainders(problem.W, problem.S, problem.stride_w, problem.left, problem.dilation_w):
            sequence += make_launches(problem, rows, cols, outputs, w, images, workspace, tiling)
    return sequence


def make_launches(problem, rows: Remainder, cols: Remainder, outputs, w, images, workspace, tiling) -> list[Launch]:
    """Return the launches for the pixels of a pair of remainders."""
    C, K, taps = problem.C // problem.groups, problem.K // problem.groups, rows.taps * cols.taps
    PQ, Q, RS, S = (make_divisor(max(1, n)) for n in (rows.pixels * cols.pixels, cols.pixels, taps, cols.taps))
    filters = workspace.array(
        f"filters {rows.first} {cols.first}", (problem.C, round_up_to_vectors(K * taps, FP32.dtype)), np.float32
    )
    r, r_step, s, s_step = rows.last_tap, -rows.tap_step, cols.last_tap, -cols.tap_step
    if problem.flipped:
        r, r_step, s, s_step = problem.R - 1 - r, -r_step, problem.S - 1 - s, -s_step
    taps_of_filters = Taps(*(np.uint32(n % 2**32) for n in (r, r_step, s, s_step, C, K, K * taps)), RS, S)
    sequence = [Launch(gather_taps, (-(-filters.shape[1] // 128), problem.C), 128, (w, filters, taps_of_filters))]

    tiling = tiling or best_tiling(C, problem.N * int(PQ.value), problem.groups)
    border = BITS if taps <= 32 else COMPARING
    kernel, shared_bytes = specialise_tiling(tiling, border)
    whole = problem.stride_h == problem.stride_w == 1 and problem.H * problem.W % 4 == 0
    numbers = rows.first * problem.W + cols.first, problem.stride_h * problem.W, problem.stride_w, whole
    target = Target(*map(np.uint32, numbers))
    height, width = tiling.tile
    max_images = max(1, MAX_ELEMENTS // outputs.shape[1])
    for n0 in range(0, problem.N, max_images):
        N = min(max_images, problem.N - n0)
        numbers = {"N": N, "C": K, "H": problem.P, "W": problem.Q, "K": C, "R": rows.taps, "P": rows.pixels}
        numbers |= {"stride_h": 1, "stride_w": 1, "top": rows.before, "left": cols.before, "flipped": 0}
        numbers |= {"dilation_h": rows.dilation, "dilation_w": cols.dilation, "CRS": K * taps, "NPQ": N * int(PQ.value)}
        conv = Sizes(**{name: np.uint32(n % 2**32) for name, n in numbers.items()}, RS=RS, S=S, PQ=PQ, Q=Q)
        grid = -(-N * int(PQ.value) // width), -(-C // height), problem.groups
        arrays = flatten(slice_rows(outputs, n0, max_images)), filters, slice_rows(images, n0, max_images)
        sequence.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), (*arrays, conv, target), shared_bytes))
    return sequence


@cache
def specialise_tiling(tiling: Tiling, border: int):
    """Return the kernel for a tiling, and its bytes of shared memory."""
    kernel = specialise(backward_data, BORDER=border, WM=tiling.rows, WARPS_X=tiling.pairs)
    return kernel, 2 * sum(tiling.tile) * BK * 4 + 2 * BK * 12
