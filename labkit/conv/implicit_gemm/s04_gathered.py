"""Asynchronous copies gather pixels from the images into shared memory, for the best fp32 product.

As in `labkit/gemm/fp32/s10_tuned`, a warp has 64 x 64 outputs and a thread 16 x 8, which leaves no registers for
prefetched pixels: `cp.async` copies them, four bytes each. A thread copies a column of the tile, an output of one
image. Q runs fastest along columns, so a warp's copies of a row are neighbours in the image. A copy of zero bytes
writes zeros: padding takes two comparisons, and no branch.

All columns need the same offsets of a row. One warp computes them for the tile after the next, one lane per row, by
multiply-high, and stores them in shared memory. There one load of 16 bytes serves a whole warp. So no divisions remain,
and no table in device memory.

Blocks have 4, 2 or 1 pairs of warps, whichever wastes least of the last wave (`best_tiling`). Layer 3 of the cuDNN
paper has 288 tiles of 128 x 256, little more than two per SM of an H100. `fragments` has the product in registers.

Costs, for K and NPQ that are multiples of the tile, and CRS too:

    CRS * (1 / (4 * BN) + 1 / BM)                 global loads per output
    CRS * ((1 + 4 / BK) / TM + 1 / TN) / 4        shared loads per output for products
    (CRS + BK) / (2 * BM)                         shared loads per output for copies
    2 * (BM + BN) * BK * 4 + 2 * BK * 12          bytes of shared memory per block
    CRS / BK + 1                                  barriers per block
    0                                             bank conflicts per block
    0                                             bytes of workspace

Limited as the product is, and by five instructions per copied pixel. Compute capability 8.0.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import flatten, reshape, slice_rows
from labkit.conv.implicit_gemm.fragments import load_rows, multiply, swizzle
from labkit.conv.implicit_gemm.tilings import BITS, COMPARING, WARPS_Y, WN, Tiling, best_tiling, choose_border_test
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs
BORDER = COMPARING  # how a copy tests that its pixel is inside the image: NONE, BITS of a mask, or COMPARING
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
MAX_ELEMENTS = 2**32  # of images per launch


@cuda.jit(device=True)
def fill_row_table(row_table, buffer, crs, conv):
    """Store the offset of a row's pixels from the corners of their windows, and the data of the border test."""
    c = fast_divide(crs, conv.RS)
    rs = np.uint32(crs - c * conv.RS.value)
    tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
    r = fast_divide(tap, conv.S)
    tap_row, tap_col = np.uint32(r * conv.dilation_h), np.uint32((tap - r * conv.S.value) * conv.dilation_w)
    row, exists = crs % BK, crs < conv.CRS
    row_table[buffer, 0, row] = np.uint32((c * conv.H + tap_row) * conv.W + tap_col)
    if BORDER == COMPARING:
        row_table[buffer, 1, row] = tap_row if exists else np.uint32(OUTSIDE)
        row_table[buffer, 2, row] = tap_col
    else:
        row_table[buffer, 1, row] = np.uint32(np.uint32(exists) << (tap if BORDER == BITS else np.uint32(0)))


@cuda.jit(device=True)
def make_tap_mask(first_row, first_col, conv):
    """Return a bit for each tap of a window that is inside the image."""
    if BORDER != BITS:
        return np.uint32(0xFFFFFFFF)
    mask = np.uint32(0)
    for tap in range(conv.RS.value):
        r = fast_divide(np.uint32(tap), conv.S)
        row = np.uint32(first_row + r * conv.dilation_h)
        col = np.uint32(first_col + (np.uint32(tap) - r * conv.S.value) * conv.dilation_w)
        mask = np.uint32(mask | np.uint32(row < conv.H and col < conv.W) << np.uint32(tap))
    return mask


@cuda.jit(device=True)
def copy_filters(A_tile, buffer, w, k0, k_end, start, conv, thread):
    """Start this thread's copies of filters, for BK rows from `start` on."""
    none = np.uint32(0)  # all in 32 bits, to save registers
    if conv.CRS % np.uint32(4) == 0:
        row, crs = thread // (BK // 4), np.uint32(start + thread % (BK // 4) * 4)
        begin = np.uint32((k0 + row) * conv.CRS + crs)
        for i in range(0, BM, A_STEP):
            valid = np.uint32(16) if np.uint32(k0 + row + i) < k_end and crs < conv.CRS else none
            source = np.uint32(begin + i * conv.CRS)
            ptx.cp_async(A_tile, (buffer, row + i, swizzle(row + i, thread % (BK // 4) * 4)), w, source, 16, valid)
    else:
        row, crs = thread // BK, np.uint32(start + thread % BK)
        begin = np.uint32((k0 + row) * conv.CRS + crs)
        for i in range(0, BM, THREADS // BK):
            valid = np.uint32(4) if np.uint32(k0 + row + i) < k_end and crs < conv.CRS else none
            source = np.uint32(begin + i * conv.CRS)
            ptx.cp_async(A_tile, (buffer, row + i, swizzle(row + i, thread % BK)), w, source, 4, valid)


@cuda.jit(device=True)
def copy_pixels(B_tile, row_table, buffer, x, corner, first_row, first_col, tap_mask, conv, thread):
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
            ptx.cp_async(B_tile, (buffer, k + n, thread), x, np.uint32(corner + offset[n]), 4, valid)


@cuda.jit(launch_bounds=(256, 1))  # or as many threads in smaller blocks
def gathered(x, w, y, conv):
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
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
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
    copy_pixels(B_tile, row_table, buffer, x, corner, first_row, first_col, tap_mask, conv, thread)
    ptx.cp_async_commit()
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2  # each 8 lanes: 2 rows, 4 columns
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(0, conv.CRS, BK):
        # -- load next tiles --
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_filters(A_tile, buffer ^ one, w, k0, k_end, np.uint32(start + BK), conv, thread)
        copy_pixels(B_tile, row_table, buffer ^ one, x, corner, first_row, first_col, tap_mask, conv, thread)
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
        if conv.PQ.value % np.uint32(4) == 0:  # four neighbours are of one image
            n = fast_divide(npq, conv.PQ)
            pq = np.uint32(npq - n * conv.PQ.value)
            for i in range(TM):
                k = np.uint32(k0 + y_lane + i * LANES_Y)
                if k < k_end and npq < conv.NPQ:
                    ptx.store4(y, (n, k, pq), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
        else:
            for m in range(4):
                n = fast_divide(np.uint32(npq + m), conv.PQ)
                pq = np.uint32(npq + m - n * conv.PQ.value)
                for i in range(TM):
                    k = np.uint32(k0 + y_lane + i * LANES_Y)
                    if k < k_end and n < conv.N:
                        y[n, k, pq] = acc[i, j + m]


def launches(x, w, y, problem, tiling=None):
    """y = the convolution of x and w, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED)
    pixels, filters = problem.C * problem.H * problem.W, problem.K // problem.groups
    tiling = tiling or best_tiling(filters, problem.N * problem.P * problem.Q, problem.groups)
    kernel, shared_bytes = specialise_tiling(tiling, choose_border_test(problem))
    images, outputs = reshape(x, problem.N, pixels), reshape(y, problem.N, problem.K, problem.P * problem.Q)
    rows, cols = tiling.tile
    sequence = []
    max_images = max(1, MAX_ELEMENTS // pixels)  # whose pixels fit a 32-bit index
    for n0 in range(0, problem.N, max_images):
        chunk = replace(problem, N=min(max_images, problem.N - n0))
        grid = -(-chunk.N * problem.P * problem.Q // cols), -(-filters // rows), problem.groups
        arrays = flatten(slice_rows(images, n0, max_images)), flatten(w), slice_rows(outputs, n0, max_images)
        sequence.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), (*arrays, make_sizes(chunk)), shared_bytes))
    return sequence


@cache
def specialise_tiling(tiling: Tiling, border: int):
    """Return the kernel for a tiling, and its bytes of shared memory."""
    kernel = specialise(gathered, BORDER=border, WM=tiling.rows, WARPS_X=tiling.pairs)
    return kernel, 2 * sum(tiling.tile) * BK * 4 + 2 * BK * 12
