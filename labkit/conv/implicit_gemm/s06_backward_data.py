"""The gradient of the images is a convolution of the outputs' gradient, or as many as strides have remainders.

An output p met the pixels p * stride_h + r * dilation_h - top. So a pixel h was met from (h + top - r * dilation_h) /
stride_h, by the taps r for which this is whole: pixels with the same remainder by stride_h are met by the same taps,
and for them outputs follow one another. Each pair of remainders, of rows and of columns, is a convolution with a stride
of 1: its images are the gradient of the outputs, its filters some taps of the filters, turned by half a turn and with C
in the place of K, and its outputs every stride-th pixel.

A first launch brings these taps together, in rows of whole pieces of 16 bytes; no tap is in two of them. The second is
`s04_gathered`, but that it leaves out none of its borders, and knows where its outputs go.

Costs, for C and N * H * W that are multiples of the tile, and KRS too, at strides of 1:

    KRS * (1 / (4 * BN) + 1 / BM)                 global loads per pixel, and fewer at the borders
    2 * (BM + BN) * BK * 4 + 2 * BK * 12          bytes of shared memory per block
    KRS / BK + 1                                  barriers per block
    4 * C * KRS                                   bytes of workspace

Limited by what limits the product; and where C is small, as in a first layer, by rows of tiles that stay empty. Compute
capability 8.0.
"""

from functools import cache
from math import gcd
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import in_pieces
from labkit.arrays.views import flat, reshaped, rows_of
from labkit.conv.implicit_gemm.tilings import WARPS_Y, WN, Tiling, best_tiling
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import BackwardData
from labkit.conv.sizes import Sizes
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.division import Divisor, fast_divide, make_divisor

PROBLEM = BackwardData
STANDING = 2, 16, 10, 10, 32, 3, 3
BENCHED = batched(128, TABLE_2)
TAKES = {"result": ("x",), "layout": ("NCHW",)}
BITS, COMPARING = 1, 2  # how a copy knows that its pixel is inside of the image
BORDER = COMPARING
OUTSIDE = 2**31  # rows below any window
WM = 64  # a warp's part of the outputs: filters, and WN pixels
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 4
WARPS_X = 4
THREADS = 32 * WARPS_Y * WARPS_X
BM, BN, BK = WM * WARPS_Y, WN * WARPS_X, 32  # a block's part, a column for each thread, and its steps along CRS
A_STEP = THREADS * 4 // BK  # rows of filters that the block copies at once
B_BYTE = 2 * BM * BK * 4  # where the tiles of pixels begin in dynamic shared memory
ROWS_BYTE = B_BYTE + 2 * BK * BN * 4  # and what is known of their rows
SHARED_BYTES = ROWS_BYTE + 2 * BK * 12


@cuda.jit(device=True)
def place(row, k):
    """Where in its row of the filters' tile a value lies: groups of four change places, otherwise in each of 4 rows."""
    return k ^ row % 4 * 4


@cuda.jit(device=True)
def find_row(rows, buffer, crs, of):
    """Writes down how far the pixels of a row lie from the corners of their windows, and when they are inside."""
    c = fast_divide(crs, of.RS)
    rs = np.uint32(crs - c * of.RS.value)
    r = fast_divide(rs, of.S)
    below, beside = np.uint32(r * of.dilation_h), np.uint32((rs - r * of.S.value) * of.dilation_w)
    row, exists = crs % BK, crs < of.CRS
    rows[buffer, 0, row] = np.uint32((c * of.H + below) * of.W + beside)
    if BORDER == COMPARING:
        rows[buffer, 1, row] = below if exists else np.uint32(OUTSIDE)
        rows[buffer, 2, row] = beside
    else:
        rows[buffer, 1, row] = np.uint32(np.uint32(exists) << rs)


@cuda.jit(device=True)
def taps_inside(top, left, of):
    """A bit for each tap of a window that lies in the image."""
    bits = np.uint32(0)
    for tap in range(of.RS.value if BORDER == BITS else np.uint32(0)):
        r = fast_divide(np.uint32(tap), of.S)
        row = np.uint32(top + r * of.dilation_h)
        col = np.uint32(left + (np.uint32(tap) - r * of.S.value) * of.dilation_w)
        bits = np.uint32(bits | np.uint32(row < of.H and col < of.W) << np.uint32(tap))
    return bits


@cuda.jit(device=True)
def copy_filters(A_tile, buffer, w, first, end, start, of, t):
    """Begins this thread's copies of filters, for BK rows from `start` on."""
    none = np.uint32(0)  # all in 32 bits, since registers are short
    row, col = t // (BK // 4), t % (BK // 4) * 4
    crs = np.uint32(start + col)
    for i in range(0, BM, A_STEP):
        at = np.uint32(first + row + i), crs
        valid = np.uint32(16) if at[0] < end and crs < of.CRS else none
        ptx.cp_async(A_tile, (buffer, row + i, place(row + i, col)), w, at, 16, valid)


@cuda.jit(device=True)
def copy_pixels(B_tile, rows, buffer, y, corner, top, left, inside, of, t):
    """Begins this thread's copies of pixels, a column of BK."""
    offset = cuda.local.array(4, np.uint32)
    below = cuda.local.array(4, np.uint32)  # or bits of taps
    beside = cuda.local.array(4, np.uint32)
    for k in range(0, BK, 4):
        offset[0], offset[1], offset[2], offset[3] = ptx.load4(rows, (buffer, 0, k))
        below[0], below[1], below[2], below[3] = ptx.load4(rows, (buffer, 1, k))
        if BORDER == COMPARING:
            beside[0], beside[1], beside[2], beside[3] = ptx.load4(rows, (buffer, 2, k))
        for n in range(4):
            if BORDER == COMPARING:
                counts = np.uint32(top + below[n]) < of.H and np.uint32(left + beside[n]) < of.W
            else:
                counts = inside & below[n] != 0
            valid = np.uint32(4) if counts else np.uint32(0)
            ptx.cp_async(B_tile, (buffer, k + n, t), y, np.uint32(corner + offset[n]), 4, valid)


@cuda.jit(device=True)
def load_rows(b, B_tile, buffer, k, x):
    """Loads this thread's part of four rows of pixels."""
    for n in range(4):
        for j in range(0, TN, 4):
            b[n, j], b[n, j + 1], b[n, j + 2], b[n, j + 3] = ptx.load4(B_tile, (buffer, k + n, x + j * LANES_X))


@cuda.jit(device=True)
def multiply(sums, A_tile, buffer, k, y, b):
    """Adds the products of the filters' columns from k to k + 3 and the four rows of pixels in `b`."""
    a = cuda.local.array(4, np.float32)
    for i in range(TM):
        row = y + i * LANES_Y
        a[0], a[1], a[2], a[3] = ptx.load4(A_tile, (buffer, row, place(row, k)))
        for n in range(4):
            for j in range(TN):
                sums[i, j] += a[n] * b[n, j]


@cuda.jit(launch_bounds=(256, 1))  # or as many threads in smaller blocks
def backward_data(y, w, x, of, to):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, BN), np.float32)
    rows = ptx.shared_array(ROWS_BYTE, (2, 3, BK), np.uint32)
    sums = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    group = np.uint32(cuda.blockIdx.z)
    first = np.uint32(group * of.K + np.uint32(cuda.blockIdx.y) * np.uint32(BM))  # filter
    end = np.uint32(group * of.K + of.K)
    t = np.uint32(warp * 32 + lane)
    npq = min(np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(BN) + t), np.uint32(of.NPQ - np.uint32(1)))
    n = fast_divide(npq, of.PQ)
    pq = np.uint32(npq - n * of.PQ.value)
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p - of.top), np.uint32(pq - p * of.Q.value - of.left)
    corner = np.uint32(((n * np.uint32(cuda.gridDim.z) + group) * of.C * of.H + top) * of.W + left)
    inside = taps_inside(top, left, of)

    for i in range(TM):
        for j in range(TN):
            sums[i, j] = 0
    one, now = np.uint32(1), np.uint32(0)
    if t < 2 * BK:
        find_row(rows, t // BK, t, of)
    cuda.syncthreads()
    copy_filters(A_tile, now, w, first, end, np.uint32(0), of, t)
    copy_pixels(B_tile, rows, now, y, corner, top, left, inside, of, t)
    ptx.cp_async_commit()
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(0, of.CRS, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_filters(A_tile, now ^ one, w, first, end, np.uint32(start + BK), of, t)
        copy_pixels(B_tile, rows, now ^ one, y, corner, top, left, inside, of, t)
        ptx.cp_async_commit()
        if warp == 0:
            find_row(rows, now, np.uint32(start + 2 * BK + lane), of)
        load_rows(b, B_tile, now, 0, x_lane)
        for k in range(0, BK, 16):
            load_rows(b_next, B_tile, now, k + 4, x_lane)
            multiply(sums, A_tile, now, k, y_lane, b)
            load_rows(b, B_tile, now, k + 8, x_lane)
            multiply(sums, A_tile, now, k + 4, y_lane, b_next)
            load_rows(b_next, B_tile, now, k + 12, x_lane)
            multiply(sums, A_tile, now, k + 8, y_lane, b)
            load_rows(b, B_tile, now, (k + 16) % BK, x_lane)  # the last time in vain, for want of a branch
            multiply(sums, A_tile, now, k + 12, y_lane, b_next)
        now = now ^ one

    for j in range(0, TN, 4):
        npq = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(BN) + x_lane + j * LANES_X)
        if to.whole:  # four neighbours are of one image, and are neighbours there
            n = fast_divide(npq, of.PQ)
            pq = np.uint32(npq - n * of.PQ.value)
            for i in range(TM):
                c = np.uint32(first + y_lane + i * LANES_Y)
                if c < end and npq < of.NPQ:
                    ptx.store4(x, (n, c, pq), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
        else:
            for m in range(4):
                n = fast_divide(np.uint32(npq + m), of.PQ)
                pq = np.uint32(npq + m - n * of.PQ.value)
                p = fast_divide(pq, of.Q)
                at = np.uint32(to.first + p * to.down + (pq - p * of.Q.value) * to.across)
                for i in range(TM):
                    c = np.uint32(first + y_lane + i * LANES_Y)
                    if c < end and n < of.N:
                        x[n, c, at] = sums[i, j + m]


class Goal(NamedTuple):
    """Which pixels of a channel are computed, all uint32: the first, and how far it is down and across to the next.

    `whole` says that these are all, and a multiple of four.
    """

    first: np.uint32
    down: np.uint32
    across: np.uint32
    whole: np.uint32


class Taps(NamedTuple):
    """The first tap that is taken along rows and columns, and how far it is to the next: uint32, modulo 2**32.

    Filters have so many rows here, one for each channel of a group; the others are as in `Sizes`.
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
def bring_together(w, brought, of):
    """`brought[c, krs]` is the tap of the filter k of this group that channel c meets; zero where there is none."""
    krs = np.uint32(cuda.grid(1))
    row = np.uint32(cuda.blockIdx.y)
    k = fast_divide(krs, of.RS)
    rs = np.uint32(krs - k * of.RS.value)
    i = fast_divide(rs, of.S)
    r, s = np.uint32(of.r + i * of.r_step), np.uint32(of.s + (rs - i * of.S.value) * of.s_step)
    if krs < brought.shape[1]:
        group, c = row // of.rows, row % of.rows
        brought[row, krs] = w[group * of.K + k, c, r, s] if krs < of.KRS else np.float32(0)


MOST = 2**32  # elements of the outputs' gradient that a launch counts


def launches(x, w, y, problem, workspace, tiling=None):
    """x = the gradient of the images, of the outputs' gradient y and the filters w, by the tiling that is given."""
    problem.check(x, w, y, takes=TAKES)
    outputs = reshaped(y, problem.N, problem.K * problem.P * problem.Q)
    images = reshaped(x, problem.N, problem.C, problem.H * problem.W)
    made = []
    for rows in remainders(problem.H, problem.R, problem.stride_h, problem.top, problem.dilation_h):
        for cols in remainders(problem.W, problem.S, problem.stride_w, problem.left, problem.dilation_w):
            made += of_remainders(problem, rows, cols, outputs, w, images, workspace, tiling)
    return made


class Remainder(NamedTuple):
    """Pixels along an axis with the same remainder by the stride, and the taps that meet them, the last tap first.

    `before` is how many outputs stand before the first one that is there, for the first pixel.
    """

    first: int
    pixels: int
    last_tap: int
    tap_step: int
    taps: int
    before: int
    dilation: int


def remainders(size: int, taps: int, stride: int, before: int, dilation: int) -> list[Remainder]:
    """The pixels of an axis by their remainders, those without pixels left out."""
    found, apart = [], gcd(stride, dilation)
    for first in range(min(stride, size)):
        meeting = [tap for tap in range(taps) if (first + before - tap * dilation) % stride == 0]
        last = meeting[-1] if meeting else 0
        pixels = -(-(size - first) // stride)
        first_output = (first + before - last * dilation) // stride
        found.append(Remainder(first, pixels, last, stride // apart, len(meeting), -first_output, dilation // apart))
    return found


def of_remainders(problem, rows: Remainder, cols: Remainder, outputs, w, images, workspace, tiling) -> list[Launch]:
    """The launches for pixels of certain remainders."""
    C, K, taps = problem.C // problem.groups, problem.K // problem.groups, rows.taps * cols.taps
    PQ, Q, RS, S = (make_divisor(max(1, n)) for n in (rows.pixels * cols.pixels, cols.pixels, taps, cols.taps))
    brought = workspace.array(
        f"filters {rows.first} {cols.first}", (problem.C, in_pieces(K * taps, FP32.dtype)), np.float32
    )
    r, r_step, s, s_step = rows.last_tap, -rows.tap_step, cols.last_tap, -cols.tap_step
    if problem.flipped:
        r, r_step, s, s_step = problem.R - 1 - r, -r_step, problem.S - 1 - s, -s_step
    which = Taps(*(np.uint32(n % 2**32) for n in (r, r_step, s, s_step, C, K, K * taps)), RS, S)
    made = [Launch(bring_together, (-(-brought.shape[1] // 128), problem.C), 128, (w, brought, which))]

    tiling = tiling or best_tiling(C, problem.N * int(PQ.value), problem.groups)
    border = BITS if taps <= 32 else COMPARING
    kernel, shared_bytes = with_tiling(tiling, border)
    whole = problem.stride_h == problem.stride_w == 1 and problem.H * problem.W % 4 == 0
    numbers = rows.first * problem.W + cols.first, problem.stride_h * problem.W, problem.stride_w, whole
    goal = Goal(*map(np.uint32, numbers))
    height, width = tiling.tile
    most = max(1, MOST // outputs.shape[1])
    for first in range(0, problem.N, most):
        N = min(most, problem.N - first)
        numbers = {"N": N, "C": K, "H": problem.P, "W": problem.Q, "K": C, "R": rows.taps, "P": rows.pixels}
        numbers |= {"stride_h": 1, "stride_w": 1, "top": rows.before, "left": cols.before, "turn": 0}
        numbers |= {"dilation_h": rows.dilation, "dilation_w": cols.dilation, "CRS": K * taps, "NPQ": N * int(PQ.value)}
        of = Sizes(**{name: np.uint32(n % 2**32) for name, n in numbers.items()}, RS=RS, S=S, PQ=PQ, Q=Q)
        grid = -(-N * int(PQ.value) // width), -(-C // height), problem.groups
        arrays = flat(rows_of(outputs, first, most)), brought, rows_of(images, first, most)
        made.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), (*arrays, of, goal), shared_bytes))
    return made


@cache
def with_tiling(tiling: Tiling, border: int):
    """The kernel for a tiling, and the bytes of shared memory that it takes."""
    rows, cols = tiling.tile
    bytes_of_filters, bytes_of_pixels = 2 * rows * BK * 4, 2 * BK * cols * 4
    kernel = specialise(
        backward_data,
        BORDER=border,
        WM=tiling.rows,
        TM=tiling.rows // LANES_Y,
        WARPS_X=tiling.pairs,
        BM=rows,
        BN=cols,
        A_STEP=tiling.threads * 4 // BK,
        B_BYTE=bytes_of_filters,
        ROWS_BYTE=bytes_of_filters + bytes_of_pixels,
    )
    return kernel, bytes_of_filters + bytes_of_pixels + 2 * BK * 12
