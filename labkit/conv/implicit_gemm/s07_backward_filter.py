"""The gradient of the filters sums over all outputs of all images: in parts, so that there are blocks enough.

It is the product of a K x NPQ and an NPQ x CRS matrix: the outputs' gradient, and the images lowered and turned. What
was the long side is summed over now, and the result is as small as the filters: layer 3 of the cuDNN paper has 41 tiles
of 128 x 256 for 132 SMs. So NPQ is cut into parts, each of which gives a whole gradient, and a second launch adds these
up in their order: every run gives the same bits.

As in `s04_gathered`, `cp.async` copies pixels four bytes at a time and zeros where there are none. But lanes stand
along the sum here, since neighbours along Q are neighbours in both arrays: a lane has an output of the 32 in a tile,
finds its window by multiply-high once, and copies its pixels for all taps. Where those lie from the corner of a window
is the same for all outputs, and stands in shared memory from the beginning. Rows of the tile begin four banks apart, so
that copies of a warp, which go to one column, meet eight banks.

Costs, for K and CRS that are multiples of the tile, and NPQ of the parts:

    NPQ * (1 / BN + 1 / BM)                       global loads per element of the filters
    2 * (BM * BK + BK * PITCH) * 4 + BN * 12      bytes of shared memory per block
    NPQ / parts / BK + 1                          barriers per block
    4 * K * CRS * parts                           bytes of workspace, if there is more than one part

Limited by what limits the product, and by copies of four bytes for both operands. Compute capability 8.0.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import flat, reshaped, rows_of
from labkit.conv.implicit_gemm.tilings import WARPS_Y, WN, Tiling, best_parts
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import BackwardFilter
from labkit.conv.sizes import sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide, make_divisor

PROBLEM = BackwardFilter
EXAMPLES = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 9, 18, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (40, 4, 7, 6, 4, 2, 2, 1, 1, 0, 1, 0, 1, 1, 1, 2, True),
)  # the last in parts
BENCHED = batched(128, TABLE_2)
LARGEST = ((32, 64, 64, 64, 64, 8, 8),)
TAKES = {"result": ("w",), "layout": ("NCHW",)}
PADDED = True  # whether some pixels lie outside of the image
WM = 64  # a warp's part of the result: filters, and WN taps
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # elements of a thread, in groups of 1 x 4
WARPS_X = 4
WARPS = WARPS_Y * WARPS_X
BM, BN, BK = WM * WARPS_Y, WN * WARPS_X, 32  # a block's part, and its steps along NPQ: one for each lane
PITCH = BN + 4  # from a row of the tile of pixels to the next
B_BYTE = 2 * BM * BK * 4  # where the tiles of pixels begin in dynamic shared memory
TAPS_BYTE = B_BYTE + 2 * BK * PITCH * 4  # and what is known of taps
OUTSIDE = 2**31  # rows below any window
THREADS = 256  # of the second launch
MOST = 2**32  # elements of an array that a launch counts


@cuda.jit(device=True)
def place(row, k):
    """Where in its row of gradients a value lies: groups of four change places, otherwise in each of four rows."""
    return k ^ row % 4 * 4


@cuda.jit(device=True)
def find_tap(taps, column, crs, of):
    """Writes down how far the pixels of a tap lie from the corners of their windows."""
    c = fast_divide(crs, of.RS)
    rs = np.uint32(crs - c * of.RS.value)
    tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
    r = fast_divide(tap, of.S)
    below, beside = np.uint32(r * of.dilation_h), np.uint32((tap - r * of.S.value) * of.dilation_w)
    exists = crs < of.CRS  # else it is the first of all, which no one asks for
    taps[0, column] = np.uint32((c * of.H + below) * of.W + beside) if exists else np.uint32(0)
    taps[1, column] = below if exists else np.uint32(0)
    taps[2, column] = beside if exists else np.uint32(0)


@cuda.jit(device=True)
def copy_tiles(A_tile, B_tile, taps, buffer, x, y, npq, end, first, last, group, groups, of, lane, warp):
    """Begins this thread's copies of both tiles: of one output, for every WARPS-th filter, and for groups of taps."""
    none, four = np.uint32(0), np.uint32(4)  # all in 32 bits, since registers are short
    offset = cuda.local.array(4, np.uint32)
    below = cuda.local.array(4, np.uint32)
    beside = cuda.local.array(4, np.uint32)
    n = fast_divide(npq, of.PQ)
    pq = np.uint32(npq - n * of.PQ.value)
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
    image = np.uint32(n * groups + group)
    corner = np.uint32((image * of.C * of.H + top) * of.W + left)
    output = np.uint32((image * of.K + first + warp) * of.PQ.value + pq)
    exists = npq < end
    for i in range(0, BM, WARPS):
        valid = four if exists and np.uint32(first + warp + i) < last else none
        at = np.uint32(output + i * of.PQ.value)
        ptx.cp_async(A_tile, (buffer, warp + i, place(warp + i, lane)), y, at, 4, valid)
    for j in range(0, BN, 4 * WARPS):
        column = warp * 4 + j
        offset[0], offset[1], offset[2], offset[3] = ptx.load4(taps, (0, column))
        if PADDED:
            below[0], below[1], below[2], below[3] = ptx.load4(taps, (1, column))
            beside[0], beside[1], beside[2], beside[3] = ptx.load4(taps, (2, column))
        for m in range(4):
            counts = exists
            if PADDED:
                counts = exists and np.uint32(top + below[m]) < of.H and np.uint32(left + beside[m]) < of.W
            valid = four if counts else none
            ptx.cp_async(B_tile, (buffer, lane, column + m), x, np.uint32(corner + offset[m]), 4, valid)
    ptx.cp_async_commit()


@cuda.jit(device=True)
def load_rows(b, B_tile, buffer, k, x):
    """Loads this thread's part of four rows of pixels."""
    for n in range(4):
        for j in range(0, TN, 4):
            b[n, j], b[n, j + 1], b[n, j + 2], b[n, j + 3] = ptx.load4(B_tile, (buffer, k + n, x + j * LANES_X))


@cuda.jit(device=True)
def multiply(sums, A_tile, buffer, k, y, b):
    """Adds the products of the gradients' columns from k to k + 3 and the four rows of pixels in `b`."""
    a = cuda.local.array(4, np.float32)
    for i in range(TM):
        row = y + i * LANES_Y
        a[0], a[1], a[2], a[3] = ptx.load4(A_tile, (buffer, row, place(row, k)))
        for n in range(4):
            for j in range(TN):
                sums[i, j] += a[n] * b[n, j]


@cuda.jit(launch_bounds=(256, 1))  # or as many threads in smaller blocks
def backward_filter(x, y, w, length, groups, of):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, PITCH), np.float32)
    taps = ptx.shared_array(TAPS_BYTE, (3, BN), np.uint32)
    sums = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    part = fast_divide(np.uint32(cuda.blockIdx.z), groups)
    group = np.uint32(np.uint32(cuda.blockIdx.z) - part * groups.value)
    first, left = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    t = np.uint32(warp * 32 + lane)
    for column in range(t, BN, 32 * WARPS):
        find_tap(taps, column, np.uint32(left + column), of)
    cuda.syncthreads()

    for i in range(TM):
        for j in range(TN):
            sums[i, j] = 0
    one, now = np.uint32(1), np.uint32(0)
    begin = np.uint32(part * length)
    end = min(np.uint32(begin + length), of.NPQ)
    copy_tiles(
        A_tile, B_tile, taps, now, x, y, np.uint32(begin + lane), end, first, of.K, group, groups.value, of, lane, warp
    )
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y_lane, x_lane = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    for start in range(begin, end, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        npq = np.uint32(start + BK + lane)
        copy_tiles(A_tile, B_tile, taps, now ^ one, x, y, npq, end, first, of.K, group, groups.value, of, lane, warp)
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

    for i in range(TM):
        k = np.uint32(first + y_lane + i * LANES_Y)
        for j in range(0, TN, 4):
            crs = np.uint32(left + x_lane + j * LANES_X)
            if of.CRS % np.uint32(4) == 0:
                if k < of.K and crs < of.CRS:
                    ptx.store4(
                        w, (part, group * of.K + k, crs), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3]
                    )
            else:
                for m in range(4):
                    if k < of.K and crs + m < of.CRS:
                        w[part, group * of.K + k, np.uint32(crs + m)] = sums[i, j + m]


@cuda.jit
def add_up(parts, w):
    """w = the sum of the parts, in their order."""
    i = cuda.grid(1)
    if i < w.size:
        total = parts[0, i]
        for part in range(1, parts.shape[0]):
            total += parts[part, i]
        w[i] = total


def launches(x, w, y, problem, workspace, tiling=None, parts=1, limit_bytes=None):
    """w = the gradient of the filters, of the images x and the outputs' gradient y, by the tiling and in such parts."""
    problem.check(x, w, y, takes=TAKES)
    N, C, K, groups = problem.N, problem.C // problem.groups, problem.K // problem.groups, problem.groups
    CRS, PQ = C * problem.R * problem.S, problem.P * problem.Q
    images, outputs = reshaped(x, N, problem.C * problem.H * problem.W), reshaped(y, N, problem.K * PQ)
    if tiling is None:
        tiling, parts = best_parts(K, CRS, N * PQ, groups, limit_bytes)
    rows, cols = tiling.tile
    tiles = -(-K // rows), -(-CRS // cols)
    length = -(-N * PQ // (BK * parts)) * BK
    most = max(1, MOST // max(images.shape[1], outputs.shape[1]))  # images, whose elements are counted in 32 bits
    counts = [-(-min(most, N - first) * PQ // length) for first in range(0, N, most)]
    filters = reshaped(w, 1, problem.K, CRS)
    sums = workspace.array("parts", (sum(counts), problem.K, CRS), np.float32) if sum(counts) > 1 else filters
    kernel, shared_bytes = with_tiling(tiling, any((problem.top, problem.bottom, problem.left, problem.right)))
    made = []
    for number, count in enumerate(counts):
        first = number * most
        some = replace(problem, N=min(most, N - first))
        arrays = flat(rows_of(images, first, most)), flat(rows_of(outputs, first, most))
        of_some = rows_of(sums, sum(counts[:number]), count)
        arguments = *arrays, of_some, np.uint32(length), make_divisor(groups), sizes(some)
        grid = tiles[1], tiles[0], count * groups
        made.append(Launch(kernel, grid, (32, WARPS_Y * tiling.pairs), arguments, shared_bytes))
    if sums is not filters:
        size = problem.K * CRS
        made.append(Launch(add_up, -(-size // THREADS), THREADS, (reshaped(sums, sum(counts), size), flat(w))))
    return made


@cache
def with_tiling(tiling: Tiling, padded: bool):
    """The kernel for a tiling, and the bytes of shared memory that it takes."""
    rows, cols = tiling.tile
    bytes_of_gradients, bytes_of_pixels = 2 * rows * BK * 4, 2 * BK * (cols + 4) * 4
    kernel = specialise(
        backward_filter,
        PADDED=padded,
        WM=tiling.rows,
        TM=tiling.rows // LANES_Y,
        WARPS_X=tiling.pairs,
        WARPS=WARPS_Y * tiling.pairs,
        BM=rows,
        BN=cols,
        PITCH=cols + 4,
        B_BYTE=bytes_of_gradients,
        TAPS_BYTE=bytes_of_gradients + bytes_of_pixels,
    )
    return kernel, bytes_of_gradients + bytes_of_pixels + 12 * cols
