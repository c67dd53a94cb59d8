"""Copies of 16 bytes, eight channels of a pixel each, gather windows into tiles for the tensor cores.

This is `gemm/tensor/s03_pipelined` with another left matrix: its rows are the windows of 128 outputs, its columns the
taps of a filter, counted over R, S and C. Channels are last, so 16 bytes of a row are contiguous in memory. One copy
moves them to a swizzled tile from which `ldmatrix` loads without bank conflicts. A thread copies the same column of
vectors in all its rows. With each tile it splits its vector's number into r, s and c, by multiply-high, once for all
rows. A copy of zero bytes writes zeros: padding costs two comparisons and no branch.

If C is not a multiple of 8, a launch before this one copies images and filters to a workspace, with zeros after the
channels of each pixel. Stores of results are `tensor.edges`.

Costs, where C is a multiple of 64, K of BN and NPQ of BM, and nothing is padded:

    CRS * (1 / BM + 1 / BN) / 8       copies per output, of 16 bytes
    CRS * (1 / WM + 1 / WN) / 8       `ldmatrix` per output and lane
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bank conflicts per block
    0                                 bytes of workspace

Limited by work around the tensor cores: each thread computes an address and two comparisons per copy, and all warps
wait at a barrier in every step. Compute capability 8.0.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.sizes import make_windows
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import SUPPORTED, as_outputs, as_vectors, pad_channels, specialise_for_outputs
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

FORMAT = RESULT = ptx.BF16  # of x and w, and of y; `launches` replaces both
BM, BN = 128, 128  # tile of a block: pixels and filters
BK = 32  # words of taps per stage, 128 bytes
VECTORS = BK // 4  # of 16 bytes
STEP = 8  # words of taps per instruction
STAGES = 3
AHEAD = STAGES - 1  # stages that copies are ahead of the products
PENDING = STAGES - 2  # stages whose copies may be in flight while one is multiplied
WM, WN = 64, 64  # tile of a warp
MI, NI = WM // 16, WN // 8  # its fragments
WARPS_X = BN // WN
WARPS = BM // WM * WARPS_X
ROWS = 32 * WARPS // VECTORS  # of a tile that the block copies at once
WINDOWS = BM // ROWS  # rows of pixels of which a thread copies vectors, all in one column
OUTSIDE = 2**31  # a row that is in no image
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4


@cuda.jit(device=True)
def find_windows(rows, cols, corners, npq0, conv):
    """Compute the corners of a thread's windows: their rows, columns and vectors, large if negative."""
    for i in range(WINDOWS):
        npq = np.uint32(npq0 + i * ROWS)
        n = fast_divide(npq, conv.PQ)
        pq = np.uint32(npq - n * conv.PQ.value)
        p = fast_divide(pq, conv.Q)
        row = np.uint32(p * conv.stride_h - conv.top)
        cols[i] = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
        corners[i] = np.uint32(((n * conv.H + row) * conv.W + cols[i]) * conv.vectors.value)
        rows[i] = row if npq < conv.NPQ else np.uint32(OUTSIDE)


@cuda.jit(device=True)
def copy_stage(x_tiles, w_tiles, stage, x, w, rows, cols, corners, k0, tile, thread, conv):
    """Start this thread's copies to a stage: a column of vectors, of windows and of filters."""
    y, column = np.uint32(thread // VECTORS), np.uint32(thread % VECTORS)
    vector = np.uint32(tile * VECTORS + column)
    tap = fast_divide(vector, conv.vectors)
    c = np.uint32(vector - tap * conv.vectors.value)
    r = fast_divide(tap, conv.S)
    down, across = np.uint32(r * conv.dilation_h), np.uint32((tap - r * conv.S.value) * conv.dilation_w)
    offset = np.uint32((down * conv.W + across) * conv.vectors.value + c)
    exists, none = tap < conv.RS, np.uint32(0)
    word = np.uint32((column ^ y % 8) * 4)  # swizzled: eight rows of a column are in different banks
    for i in range(WINDOWS):
        inside = exists and np.uint32(rows[i] + down) < conv.H and np.uint32(cols[i] + across) < conv.W
        valid = np.uint32(16) if inside else none
        ptx.cp_async(x_tiles, (stage, y + i * ROWS, word), x, (np.uint32(corners[i] + offset), none), 16, valid)
    w_tap = np.uint32(tap + conv.flipped * (conv.RS - np.uint32(1 + tap + tap)))  # from the end, if flipped
    begin = np.uint32(w_tap * conv.vectors.value + c)
    for i in range(BN // ROWS):
        k = np.uint32(k0 + y + i * ROWS)
        valid = np.uint32(16) if exists and k < conv.K else none
        source = np.uint32(k * conv.RS * conv.vectors.value + begin)
        ptx.cp_async(w_tiles, (stage, y + i * ROWS, word), w, (source, none), 16, valid)


@cuda.jit(launch_bounds=(32 * WARPS, 2))
def mma(x, w, y, conv):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    acc = cuda.local.array((MI, NI, 4), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    b = cuda.local.array((NI, 2), np.uint32)
    rows = cuda.local.array(WINDOWS, np.uint32)
    cols = cuda.local.array(WINDOWS, np.uint32)
    corners = cuda.local.array(WINDOWS, np.uint32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    npq0, k0 = np.uint32(cuda.blockIdx.x) * np.uint32(BM), np.uint32(cuda.blockIdx.y) * np.uint32(BN)
    row, col = np.uint32(warp // WARPS_X * WM), np.uint32(warp % WARPS_X * WN)
    thread = np.uint32(warp * 32 + lane)
    a_row, a_vector = np.uint32(lane % 16), np.uint32(lane // 16)  # row and vector of this lane for ldmatrix
    b_row, b_vector = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    tiles = np.uint32(conv.RS * conv.vectors.value + np.uint32(VECTORS - 1)) // np.uint32(VECTORS)

    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                acc[i, j, n] = 0
    find_windows(rows, cols, corners, npq0 + thread // VECTORS, conv)
    for tile in range(AHEAD):
        copy_stage(x_tiles, w_tiles, tile, x, w, rows, cols, corners, k0, tile, thread, conv)
        ptx.cp_async_commit()
    stage, ahead, following = np.uint32(0), np.uint32(AHEAD), np.uint32(AHEAD)
    for _ in range(tiles):
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()
        if following < tiles:
            copy_stage(x_tiles, w_tiles, ahead, x, w, rows, cols, corners, k0, following, thread, conv)
        ptx.cp_async_commit()
        for step in range(0, BK, STEP):
            for i in range(MI):
                word = (step // 4 + a_vector ^ a_row % 8) * 4
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(x_tiles, (stage, row + i * 16 + a_row, word))
            for j in range(0, NI, 2):
                word = (step // 4 + b_vector ^ b_row % 8) * 4
                b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1] = ptx.ldmatrix4(w_tiles, (stage, col + j * 8 + b_row, word))
            for i in range(MI):
                for j in range(NI):
                    ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b[j, 0], b[j, 1]), FORMAT)
        following = np.uint32(following + 1)
        ahead, stage = stage, np.uint32(stage + 1) if stage + 1 < STAGES else np.uint32(0)

    for i in range(MI):
        for j in range(NI):
            npq, k = npq0 + row + i * 16 + lane // 4, k0 + col + j * 8 + lane % 4 * 2
            store_pair(y, npq, k, ptx.pack2(acc[i, j, 0], acc[i, j, 1], RESULT))
            store_pair(y, npq + 8, k, ptx.pack2(acc[i, j, 2], acc[i, j, 3], RESULT))


def geometry(problem):
    """Return grid and block."""
    return (-(-problem.N * problem.P * problem.Q // BM), -(-problem.K // BN)), (32, WARPS)


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    padding, x, w, problem = pad_channels(x, w, problem, format, workspace)
    arguments = as_vectors(x), as_vectors(w), as_outputs(y, problem), make_windows(problem, format)
    kernel = specialise_for_outputs(mma, format, is_even=problem.K % 2 == 0)
    return [*padding, Launch(kernel, *geometry(problem), arguments, SHARED_BYTES)]
