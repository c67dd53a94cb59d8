"""The gradient of the filters sums over all outputs of all images: split into parts, to fill the GPU.

It is the product of a K x NPQ and an NPQ x CRS matrix: the outputs' gradient, and the transposed im2col matrix. The sum
runs over the long side now, and the result is as small as the filters: layer 3 of the cuDNN paper has 41 tiles of
128 x 256 for 132 SMs. So NPQ is split into parts, each with a whole gradient. A second launch adds these in their
order: every run gives the same bits.

As in `s04_gathered`, `cp.async` copies pixels four bytes at a time, and zeros outside the image. Lanes run along the
sum here, since neighbours along Q are neighbours in both arrays. A lane has one output of the 32 in a tile, computes
its window by multiply-high once, and copies its pixels for all taps. Offsets of taps from the corner of a window are
the same for all outputs; shared memory holds them from the start. Rows of the tile begin four banks apart, so the
copies of a warp, which go to one column, use eight banks. `fragments` has the product in registers.

Costs, for K and CRS that are multiples of the tile, and NPQ of the parts:

    NPQ * (1 / BN + 1 / BM)                       global loads per element of the filters
    2 * (BM * BK + BK * PITCH) * 4 + BN * 12      bytes of shared memory per block
    NPQ / parts / BK + 1                          barriers per block
    4 * K * CRS * parts                           bytes of workspace, if there is more than one part

Limited as the product is, and by copies of four bytes for both operands. Compute capability 8.0.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import flatten, reshape, slice_rows
from labkit.conv.implicit_gemm.fragments import load_rows, multiply, swizzle
from labkit.conv.implicit_gemm.partial_sums import sum_parts
from labkit.conv.implicit_gemm.tilings import WARPS_Y, WN, Tiling, best_split
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import BackwardFilter
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide, make_divisor

PROBLEM = BackwardFilter
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 9, 18, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (40, 4, 7, 6, 4, 2, 2, 1, 1, 0, 1, 0, 1, 1, 1, 2, True),
)  # the sum of the last is split into parts
BENCHED = batched(128, TABLE_2)  # timed sizes
LARGEST = ((32, 64, 64, 64, 64, 8, 8),)  # sizes with the most work per thread
SUPPORTED = {"result": ("w",), "layout": ("NCHW",)}  # fields that it takes; w: gradient of filters
PADDED = True  # some pixels under taps are outside the image
WM = 64  # rows of a warp's tile, filters; its columns are WN taps
LANES_Y, LANES_X = 4, 8  # lanes of a warp
TM, TN = WM // LANES_Y, WN // LANES_X  # elements of a thread, in groups of 1 x 4
WARPS_X = 4
WARPS = WARPS_Y * WARPS_X
BM, BN, BK = WM * WARPS_Y, WN * WARPS_X, 32  # tile of a block, and its step along NPQ: one output per lane
PITCH = BN + 4  # from a row of the tile of pixels to the next
B_BYTE = 2 * BM * BK * 4  # where the tiles of pixels begin in dynamic shared memory
TABLE_BYTE = B_BYTE + 2 * BK * PITCH * 4  # where the table of taps begins
MAX_ELEMENTS = 2**32  # of an array per launch


@cuda.jit(device=True)
def fill_tap_table(tap_table, column, crs, conv):
    """Store the offset of a tap's pixels from the corners of their windows."""
    c = fast_divide(crs, conv.RS)
    rs = np.uint32(crs - c * conv.RS.value)
    tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
    r = fast_divide(tap, conv.S)
    tap_row, tap_col = np.uint32(r * conv.dilation_h), np.uint32((tap - r * conv.S.value) * conv.dilation_w)
    exists = crs < conv.CRS  # else tap 0, whose products are not stored
    tap_table[0, column] = np.uint32((c * conv.H + tap_row) * conv.W + tap_col) if exists else np.uint32(0)
    tap_table[1, column] = tap_row if exists else np.uint32(0)
    tap_table[2, column] = tap_col if exists else np.uint32(0)


@cuda.jit(device=True)
def copy_tiles(A_tile, B_tile, taps, buffer, x, y, npq, end, k0, k_end, group, groups, conv, lane, warp):
    """Start this thread's copies of both tiles: of one output, for every WARPS-th filter, and for groups of taps."""
    none, four = np.uint32(0), np.uint32(4)  # all in 32 bits, to save registers
    offset = cuda.local.array(4, np.uint32)
    tap_row = cuda.local.array(4, np.uint32)
    tap_col = cuda.local.array(4, np.uint32)
    n = fast_divide(npq, conv.PQ)
    pq = np.uint32(npq - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    image = np.uint32(n * groups + group)
    corner = np.uint32((image * conv.C * conv.H + first_row) * conv.W + first_col)
    output = np.uint32((image * conv.K + k0 + warp) * conv.PQ.value + pq)
    exists = npq < end
    for i in range(0, BM, WARPS):
        valid = four if exists and np.uint32(k0 + warp + i) < k_end else none
        source = np.uint32(output + i * conv.PQ.value)
        ptx.cp_async(A_tile, (buffer, warp + i, swizzle(warp + i, lane)), y, source, 4, valid)
    for j in range(0, BN, 4 * WARPS):
        column = warp * 4 + j
        offset[0], offset[1], offset[2], offset[3] = ptx.load4(taps, (0, column))
        if PADDED:
            tap_row[0], tap_row[1], tap_row[2], tap_row[3] = ptx.load4(taps, (1, column))
            tap_col[0], tap_col[1], tap_col[2], tap_col[3] = ptx.load4(taps, (2, column))
        for m in range(4):
            is_inside = exists
            if PADDED:
                is_inside = (
                    exists and np.uint32(first_row + tap_row[m]) < conv.H and np.uint32(first_col + tap_col[m]) < conv.W
                )
            valid = four if is_inside else none
            ptx.cp_async(B_tile, (buffer, lane, column + m), x, np.uint32(corner + offset[m]), 4, valid)
    ptx.cp_async_commit()


@cuda.jit(launch_bounds=(256, 1))  # or as many threads in smaller blocks
def backward_filter(x, y, w, part_length, groups, conv):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, PITCH), np.float32)
    taps = ptx.shared_array(TABLE_BYTE, (3, BN), np.uint32)
    acc = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned: tells the compiler that no index counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- locate the block's part and filters, fill the table of its taps --
    part = fast_divide(np.uint32(cuda.blockIdx.z), groups)
    group = np.uint32(np.uint32(cuda.blockIdx.z) - part * groups.value)
    k0, crs0 = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    thread = np.uint32(warp * 32 + lane)
    for column in range(thread, BN, 32 * WARPS):
        fill_tap_table(taps, column, np.uint32(crs0 + column), conv)
    cuda.syncthreads()

    # -- clear accumulators, load first tiles --
    for i in range(TM):
        for j in range(TN):
            acc[i, j] = 0
    one, buffer = np.uint32(1), np.uint32(0)
    begin = np.uint32(part * part_length)
    end = min(np.uint32(begin + part_length), conv.NPQ)
    copy_tiles(
        A_tile,
        B_tile,
        taps,
        buffer,
        x,
        y,
        np.uint32(begin + lane),
        end,
        k0,
        conv.K,
        group,
        groups.value,
        conv,
        lane,
        warp,
    )
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2  # each 8 lanes: 2 rows, 4 columns
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(begin, end, BK):
        # -- load next tiles --
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        npq = np.uint32(start + BK + lane)
        copy_tiles(
            A_tile, B_tile, taps, buffer ^ one, x, y, npq, end, k0, conv.K, group, groups.value, conv, lane, warp
        )
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

    # -- store the part --
    for i in range(TM):
        k = np.uint32(k0 + y_lane + i * LANES_Y)
        for j in range(0, TN, 4):
            crs = np.uint32(crs0 + x_lane + j * LANES_X)
            if conv.CRS % np.uint32(4) == 0:
                if k < conv.K and crs < conv.CRS:
                    ptx.store4(
                        w, (part, group * conv.K + k, crs), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3]
                    )
            else:
                for m in range(4):
                    if k < conv.K and crs + m < conv.CRS:
                        w[part, group * conv.K + k, np.uint32(crs + m)] = acc[i, j + m]


def launches(x, w, y, problem, workspace, tiling=None, parts=1, limit_bytes=None):
    """w = the gradient of the filters, from images x and the outputs' gradient y, by the given tiling and parts."""
    problem.check(x, w, y, supported=SUPPORTED)
    N, C, K, groups = problem.N, problem.C // problem.groups, problem.K // problem.groups, problem.groups
    CRS, PQ = C * problem.R * problem.S, problem.P * problem.Q
    images, outputs = reshape(x, N, problem.C * problem.H * problem.W), reshape(y, N, problem.K * PQ)
    if tiling is None:
        tiling, parts = best_split(K, CRS, N * PQ, groups, limit_bytes)
    rows, cols = tiling.tile
    tiles = -(-K // rows), -(-CRS // cols)
    part_length = -(-N * PQ // (BK * parts)) * BK  # terms of a sum per part
    max_images = max(1, MAX_ELEMENTS // max(images.shape[1], outputs.shape[1]))  # whose elements fit a 32-bit index
    part_counts = [-(-min(max_images, N - n0) * PQ // part_length) for n0 in range(0, N, max_images)]
    partial, num_parts = reshape(w, 1, problem.K, CRS), sum(part_counts)
    if num_parts > 1:
        partial = workspace.array("parts", (num_parts, problem.K, CRS), np.float32)
    kernel, shared_bytes = specialise_tiling(tiling, any((problem.top, problem.bottom, problem.left, problem.right)))
    sequence = []
    for index, count in enumerate(part_counts):
        n0 = index * max_images
        chunk = replace(problem, N=min(max_images, N - n0))
        arrays = flatten(slice_rows(images, n0, max_images)), flatten(slice_rows(outputs, n0, max_images))
        chunk_partial = slice_rows(partial, sum(part_counts[:index]), count)
        arguments = *arrays, chunk_partial, np.uint32(part_length), make_divisor(groups), make_sizes(chunk)
        grid = tiles[1], tiles[0], count * groups
        sequence.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), arguments, shared_bytes))
    if num_parts > 1:
        sequence.append(sum_parts(partial, w))
    return sequence


@cache
def specialise_tiling(tiling: Tiling, padded: bool):
    """Return the kernel for a tiling, and its bytes of shared memory."""
    kernel, (rows, cols) = specialise(backward_filter, PADDED=padded, WM=tiling.rows, WARPS_X=tiling.pairs), tiling.tile
    return kernel, 2 * rows * BK * 4 + 2 * BK * (cols + 4) * 4 + 12 * cols
