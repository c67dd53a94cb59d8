"""Pixels go from the images to shared memory by copies that pass the registers by, under the best fp32 product.

As in `labkit/gemm/fp32/s10_tuned`, a warp has 64 x 64 outputs and a thread 16 x 8, which leaves no registers for pixels
on their way: `cp.async` copies them, four bytes each. A thread copies a column of the tile, an output of one image. Q
runs fastest along columns, so that a warp's copies of a row are neighbours in the image. And a copy writes zeros where
it has no bytes to read: padding takes two comparisons, and no branch.

What a row needs is the same for all columns. One warp computes it for the tile after the next, a lane a row, by
multiply-high, and leaves it in shared memory, from where one load of 16 bytes serves a whole warp. So neither divisions
nor memory for a table are left.

Blocks have 4, 2 or 1 pairs of warps, whichever wastes least of the last round (`best_tiling`): layer 3 of the cuDNN
paper has 288 tiles of 128 x 256, little more than two for each SM of an H100.

Costs, for K and NPQ that are multiples of the tile, and CRS too:

    CRS * (1 / (4 * BN) + 1 / BM)                 global loads per output
    CRS * ((1 + 4 / BK) / TM + 1 / TN) / 4        shared loads per output for products
    (CRS + BK) / (2 * BM)                         shared loads per output for copies
    2 * (BM + BN) * BK * 4 + 2 * BK * 12          bytes of shared memory per block
    CRS / BK + 1                                  barriers per block
    0                                             bank conflicts per block
    0                                             bytes of workspace

Limited by what limits the product, and by five instructions for each pixel that is copied. Compute capability 8.0.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import flat, reshaped, rows_of
from labkit.conv.implicit_gemm.tilings import WARPS_Y, WN, Tiling, best_tiling
from labkit.conv.problem import Convolution
from labkit.conv.sizes import sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

TAKES = {"result": ("y",), "layout": ("NCHW",)}
NONE, BITS, COMPARING = range(3)  # how a copy knows that its pixel is inside of the image
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
    tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
    r = fast_divide(tap, of.S)
    below, beside = np.uint32(r * of.dilation_h), np.uint32((tap - r * of.S.value) * of.dilation_w)
    row, exists = crs % BK, crs < of.CRS
    rows[buffer, 0, row] = np.uint32((c * of.H + below) * of.W + beside)
    if BORDER == COMPARING:
        rows[buffer, 1, row] = below if exists else np.uint32(OUTSIDE)
        rows[buffer, 2, row] = beside
    else:
        rows[buffer, 1, row] = np.uint32(np.uint32(exists) << (tap if BORDER == BITS else np.uint32(0)))


@cuda.jit(device=True)
def taps_inside(top, left, of):
    """A bit for each tap of a window that lies in the image."""
    if BORDER != BITS:
        return np.uint32(0xFFFFFFFF)
    bits = np.uint32(0)
    for tap in range(of.RS.value):
        r = fast_divide(np.uint32(tap), of.S)
        row = np.uint32(top + r * of.dilation_h)
        col = np.uint32(left + (np.uint32(tap) - r * of.S.value) * of.dilation_w)
        bits = np.uint32(bits | np.uint32(row < of.H and col < of.W) << np.uint32(tap))
    return bits


@cuda.jit(device=True)
def copy_filters(A_tile, buffer, w, first, end, start, of, t):
    """Begins this thread's copies of filters, for BK rows from `start` on."""
    none = np.uint32(0)  # all in 32 bits, since registers are short
    if of.CRS % np.uint32(4) == 0:
        row, crs = t // (BK // 4), np.uint32(start + t % (BK // 4) * 4)
        begin = np.uint32((first + row) * of.CRS + crs)
        for i in range(0, BM, A_STEP):
            valid = np.uint32(16) if np.uint32(first + row + i) < end and crs < of.CRS else none
            at = np.uint32(begin + i * of.CRS)
            ptx.cp_async(A_tile, (buffer, row + i, place(row + i, t % (BK // 4) * 4)), w, at, 16, valid)
    else:
        row, crs = t // BK, np.uint32(start + t % BK)
        begin = np.uint32((first + row) * of.CRS + crs)
        for i in range(0, BM, THREADS // BK):
            valid = np.uint32(4) if np.uint32(first + row + i) < end and crs < of.CRS else none
            at = np.uint32(begin + i * of.CRS)
            ptx.cp_async(A_tile, (buffer, row + i, place(row + i, t % BK)), w, at, 4, valid)


@cuda.jit(device=True)
def copy_pixels(B_tile, rows, buffer, x, corner, top, left, inside, of, t):
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
            ptx.cp_async(B_tile, (buffer, k + n, t), x, np.uint32(corner + offset[n]), 4, valid)


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
def gathered(x, w, y, of):
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
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
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
    copy_pixels(B_tile, rows, now, x, corner, top, left, inside, of, t)
    ptx.cp_async_commit()
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(0, of.CRS, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_filters(A_tile, now ^ one, w, first, end, np.uint32(start + BK), of, t)
        copy_pixels(B_tile, rows, now ^ one, x, corner, top, left, inside, of, t)
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
        if of.PQ.value % np.uint32(4) == 0:  # four neighbours are of one image
            n = fast_divide(npq, of.PQ)
            pq = np.uint32(npq - n * of.PQ.value)
            for i in range(TM):
                k = np.uint32(first + y_lane + i * LANES_Y)
                if k < end and npq < of.NPQ:
                    ptx.store4(y, (n, k, pq), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
        else:
            for m in range(4):
                n = fast_divide(np.uint32(npq + m), of.PQ)
                pq = np.uint32(npq + m - n * of.PQ.value)
                for i in range(TM):
                    k = np.uint32(first + y_lane + i * LANES_Y)
                    if k < end and n < of.N:
                        y[n, k, pq] = sums[i, j + m]


MOST = 2**32  # elements of images that a launch counts


def launches(x, w, y, problem, tiling=None):
    """y = the convolution of x and w, by the tiling that is given."""
    problem.check(x, w, y, takes=TAKES)
    pixels, filters = problem.C * problem.H * problem.W, problem.K // problem.groups
    tiling = tiling or best_tiling(filters, problem.N * problem.P * problem.Q, problem.groups)
    kernel, shared_bytes = with_tiling(tiling, border(problem))
    images, outputs = reshaped(x, problem.N, pixels), reshaped(y, problem.N, problem.K, problem.P * problem.Q)
    rows, cols = tiling.tile
    made = []
    most = max(1, MOST // pixels)  # images, of which pixels are counted in 32 bits
    for first in range(0, problem.N, most):
        some = replace(problem, N=min(most, problem.N - first))
        grid = -(-some.N * problem.P * problem.Q // cols), -(-filters // rows), problem.groups
        parts = flat(rows_of(images, first, most)), flat(w), rows_of(outputs, first, most), sizes(some)
        made.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), parts, shared_bytes))
    return made


def border(problem: Convolution) -> int:
    """How copies can know that their pixels are inside of an image."""
    if not any((problem.top, problem.bottom, problem.left, problem.right)):
        return NONE
    return BITS if problem.R * problem.S <= 32 else COMPARING


@cache
def with_tiling(tiling: Tiling, border: int):
    """The kernel for a tiling, and the bytes of shared memory that it takes."""
    rows, cols = tiling.tile
    bytes_of_filters, bytes_of_pixels = 2 * rows * BK * 4, 2 * BK * cols * 4
    kernel = specialise(
        gathered,
        BORDER=border,
        WM=tiling.rows,
        TM=tiling.rows // LANES_Y,
        WARPS_X=tiling.pairs,
        THREADS=tiling.threads,
        BM=rows,
        BN=cols,
        A_STEP=tiling.threads * 4 // BK,
        B_BYTE=bytes_of_filters,
        ROWS_BYTE=bytes_of_filters + bytes_of_pixels,
    )
    return kernel, bytes_of_filters + bytes_of_pixels + 2 * BK * 12
