"""Split-K for layers with few outputs: several blocks share a tile of outputs, each with a part of CRS.

Layer 4 of the cuDNN paper with 16 images has 7 tiles of 128 x 256 for 132 SMs, and sums of 6272 products in each. Parts
of these sums fill the GPU, and write whole outputs to a workspace. A second launch adds the parts in their order: every
run gives the same bits. `best_split` chooses the number of parts and the tile together: more parts leave fewer SMs
idle, and take longer to add. With one part there is nothing to add, and this is `s04_gathered`. `fragments` has the
product in registers.

Costs, for K and NPQ that are multiples of the tile, and CRS of the parts:

    CRS * (1 / (4 * BN) + 1 / BM)                   global loads per output
    2 * (BM + BN) * BK * 4 + 2 * BK * 12            bytes of shared memory per block
    CRS / parts / BK + 1                            barriers per block
    4 * N * K * PQ * parts                          bytes of workspace, if there is more than one part

Limited as the product is, and by one more launch. Compute capability 8.0.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import flatten, reshape, slice_rows
from labkit.conv.implicit_gemm.fragments import load_rows, multiply, swizzle
from labkit.conv.implicit_gemm.partial_sums import sum_parts
from labkit.conv.implicit_gemm.tilings import (
    BITS,
    COMPARING,
    WARPS_Y,
    WN,
    Tiling,
    best_split,
    choose_border_test,
)
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide, make_divisor

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
def fill_row_table(row_table, buffer, crs, crs_end, conv):
    """Store the offset of a row's pixels from the corners of their windows, and the data of the border test."""
    c = fast_divide(crs, conv.RS)
    rs = np.uint32(crs - c * conv.RS.value)
    tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
    r = fast_divide(tap, conv.S)
    tap_row, tap_col = np.uint32(r * conv.dilation_h), np.uint32((tap - r * conv.S.value) * conv.dilation_w)
    row, exists = crs % BK, crs < crs_end
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
def copy_filters(A_tile, buffer, w, k0, k_end, start, crs_end, conv, thread):
    """Start this thread's copies of filters, for BK rows from `start` on."""
    none = np.uint32(0)  # all in 32 bits, to save registers
    if conv.CRS % np.uint32(4) == 0:
        row, crs = thread // (BK // 4), np.uint32(start + thread % (BK // 4) * 4)
        begin = np.uint32((k0 + row) * conv.CRS + crs)
        for i in range(0, BM, A_STEP):
            valid = np.uint32(16) if np.uint32(k0 + row + i) < k_end and crs < crs_end else none
            source = np.uint32(begin + i * conv.CRS)
            ptx.cp_async(A_tile, (buffer, row + i, swizzle(row + i, thread % (BK // 4) * 4)), w, source, 16, valid)
    else:
        row, crs = thread // BK, np.uint32(start + thread % BK)
        begin = np.uint32((k0 + row) * conv.CRS + crs)
        for i in range(0, BM, THREADS // BK):
            valid = np.uint32(4) if np.uint32(k0 + row + i) < k_end and crs < crs_end else none
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
def split(x, w, y, part_length, groups, conv):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, BN), np.float32)
    row_table = ptx.shared_array(TABLE_BYTE, (2, 3, BK), np.uint32)
    acc = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned: tells the compiler that no index counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- locate the block's part, its filters and this thread's window --
    part = fast_divide(np.uint32(cuda.blockIdx.z), groups)
    group = np.uint32(np.uint32(cuda.blockIdx.z) - part * groups.value)
    crs_begin = np.uint32(part * part_length)
    crs_end = min(np.uint32(crs_begin + part_length), conv.CRS)
    k0 = np.uint32(group * conv.K + np.uint32(cuda.blockIdx.y) * np.uint32(BM))  # filter
    k_end = np.uint32(group * conv.K + conv.K)
    thread = np.uint32(warp * 32 + lane)
    npq = min(np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(BN) + thread), np.uint32(conv.NPQ - np.uint32(1)))
    n = fast_divide(npq, conv.PQ)
    pq = np.uint32(npq - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    corner = np.uint32(((n * groups.value + group) * conv.C * conv.H + first_row) * conv.W + first_col)
    tap_mask = make_tap_mask(first_row, first_col, conv)

    # -- clear accumulators, load first tiles --
    for i in range(TM):
        for j in range(TN):
            acc[i, j] = 0
    one, buffer = np.uint32(1), np.uint32(0)
    if thread < 2 * BK:
        fill_row_table(row_table, thread // BK, np.uint32(crs_begin + thread), crs_end, conv)
    cuda.syncthreads()
    copy_filters(A_tile, buffer, w, k0, k_end, crs_begin, crs_end, conv, thread)
    copy_pixels(B_tile, row_table, buffer, x, corner, first_row, first_col, tap_mask, conv, thread)
    ptx.cp_async_commit()
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2  # each 8 lanes: 2 rows, 4 columns
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(crs_begin, crs_end, BK):
        # -- load next tiles --
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_filters(A_tile, buffer ^ one, w, k0, k_end, np.uint32(start + BK), crs_end, conv, thread)
        copy_pixels(B_tile, row_table, buffer ^ one, x, corner, first_row, first_col, tap_mask, conv, thread)
        ptx.cp_async_commit()
        if warp == 0:
            fill_row_table(row_table, buffer, np.uint32(start + 2 * BK + lane), crs_end, conv)
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
                    ptx.store4(y, (part, n, k, pq), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
        else:
            for m in range(4):
                n = fast_divide(np.uint32(npq + m), conv.PQ)
                pq = np.uint32(npq + m - n * conv.PQ.value)
                for i in range(TM):
                    k = np.uint32(k0 + y_lane + i * LANES_Y)
                    if k < k_end and n < conv.N:
                        y[part, n, k, pq] = acc[i, j + m]


def launches(x, w, y, problem, workspace, tiling=None, parts=1, limit_bytes=None):
    """y = the convolution of x and w, by the given tiling and number of parts, or the best."""
    problem.check(x, w, y, supported=SUPPORTED)
    N, K, groups, PQ = problem.N, problem.K, problem.groups, problem.P * problem.Q
    pixels, filters, CRS = problem.C * problem.H * problem.W, K // groups, problem.C // groups * problem.R * problem.S
    images, outputs = reshape(x, N, pixels), reshape(y, N, K, PQ)
    if tiling is None:
        tiling, parts = best_split(filters, N * PQ, CRS, groups, limit_bytes)
    max_images = max(1, MAX_ELEMENTS // pixels)  # whose pixels fit a 32-bit index
    part_length = -(-CRS // (BK * (parts if max_images >= N else 1))) * BK
    parts = -(-CRS // part_length)
    kernel, shared_bytes = specialise_tiling(tiling, choose_border_test(problem))
    rows, cols = tiling.tile
    partial = workspace.array("parts", (parts, N, K, PQ), np.float32) if parts > 1 else None
    sequence = []
    for n0 in range(0, N, max_images):
        chunk = replace(problem, N=min(max_images, N - n0))
        grid = -(-chunk.N * PQ // cols), -(-filters // rows), parts * groups
        target = partial if parts > 1 else reshape(slice_rows(outputs, n0, max_images), 1, chunk.N, K, PQ)
        arrays = flatten(slice_rows(images, n0, max_images)), flatten(w), target
        arguments = *arrays, np.uint32(part_length), make_divisor(groups), make_sizes(chunk)
        sequence.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), arguments, shared_bytes))
    if parts > 1:
        sequence.append(sum_parts(partial, y))
    return sequence


@cache
def specialise_tiling(tiling: Tiling, border: int):
    """Return the kernel for a tiling, and its bytes of shared memory."""
    kernel = specialise(split, BORDER=border, WM=tiling.rows, WARPS_X=tiling.pairs)
    return kernel, 2 * sum(tiling.tile) * BK * 4 + 2 * BK * 12
