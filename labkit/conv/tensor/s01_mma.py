"""Windows are gathered by copies of 16 bytes, eight channels of a pixel each, into tiles for the tensor cores.

This is `gemm/tensor/s03_pipelined` with another left matrix: its rows are the windows of 128 outputs, its columns the
taps of a filter, counted over R, S and C. Channels come last, so that 16 bytes of a row are neighbours in memory, and
one copy takes them to the place in a swizzled tile where `ldmatrix` meets no bank twice. A thread copies the same
column of pieces in all its rows: with each tile it takes the number of its piece apart into r, s and c, by
multiply-high, and that serves all its rows. A copy writes zeros where it has no bytes to read, so padding costs two
comparisons and no branch.

Where C is no multiple of 8, a launch before this one copies images and filters to a workspace, with zeros behind the
channels of each pixel.

Costs, where C is a multiple of 64, K of BN and NPQ of BM, and nothing is padded:

    CRS * (1 / BM + 1 / BN) / 8       copies per output, of 16 bytes
    CRS * (1 / WM + 1 / WN) / 8       `ldmatrix` per output and lane
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bank conflicts per block
    0                                 bytes of workspace

Limited by what surrounds the tensor cores' work: each thread computes an address and two comparisons for each of its
copies, and all warps meet at a barrier in every step. Compute capability 8.0.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import TAKES, as_outputs, as_pieces, prepared, with_outputs
from labkit.conv.tensor.windows import windows
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

FORMAT = RESULT = ptx.BF16
BM, BN = 128, 128  # a block's part of the outputs: pixels and filters
BK = 32  # words of taps that a stage holds, 128 bytes
PIECES = BK // 4  # of 16 bytes
STEP = 8  # words of taps that an instruction takes
STAGES = 3
AHEAD = STAGES - 1
PENDING = STAGES - 2
WM, WN = 64, 64  # a warp's part of the outputs
MI, NI = WM // 16, WN // 8  # its fragments
WARPS_X = BN // WN
WARPS = BM // WM * WARPS_X
ROWS = 32 * WARPS // PIECES  # of a tile that the block copies at once
WINDOWS = BM // ROWS  # of which a thread copies a column of pieces
OUTSIDE = 2**31  # rows below any window
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4


@cuda.jit(device=True)
def find_windows(rows, cols, corners, first, of):
    """Where the windows of a thread's rows begin: their corners' rows, columns and pieces, large where negative."""
    for i in range(WINDOWS):
        npq = np.uint32(first + i * ROWS)
        n = fast_divide(npq, of.PQ)
        pq = np.uint32(npq - n * of.PQ.value)
        p = fast_divide(pq, of.Q)
        row = np.uint32(p * of.stride_h - of.top)
        cols[i] = np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
        corners[i] = np.uint32(((n * of.H + row) * of.W + cols[i]) * of.pieces.value)
        rows[i] = row if npq < of.NPQ else np.uint32(OUTSIDE)


@cuda.jit(device=True)
def copy_stage(x_tiles, w_tiles, stage, x, w, rows, cols, corners, first_filter, tile, thread, of):
    """Begins this thread's copies to a stage: a column of pieces, of windows and of filters."""
    y, column = np.uint32(thread // PIECES), np.uint32(thread % PIECES)
    piece = np.uint32(tile * PIECES + column)
    tap = fast_divide(piece, of.pieces)
    c = np.uint32(piece - tap * of.pieces.value)
    r = fast_divide(tap, of.S)
    down, across = np.uint32(r * of.dilation_h), np.uint32((tap - r * of.S.value) * of.dilation_w)
    shift = np.uint32((down * of.W + across) * of.pieces.value + c)
    exists, none = tap < of.RS, np.uint32(0)
    word = np.uint32((column ^ y % 8) * 4)
    for i in range(WINDOWS):
        inside = exists and np.uint32(rows[i] + down) < of.H and np.uint32(cols[i] + across) < of.W
        valid = np.uint32(16) if inside else none
        ptx.cp_async(x_tiles, (stage, y + i * ROWS, word), x, (np.uint32(corners[i] + shift), none), 16, valid)
    turned = np.uint32(tap + of.turn * (of.RS - np.uint32(1 + tap + tap)))  # counted from the end, if turned
    begin = np.uint32(turned * of.pieces.value + c)
    for i in range(BN // ROWS):
        k = np.uint32(first_filter + y + i * ROWS)
        valid = np.uint32(16) if exists and k < of.K else none
        at = np.uint32(k * of.RS * of.pieces.value + begin)
        ptx.cp_async(w_tiles, (stage, y + i * ROWS, word), w, (at, none), 16, valid)


@cuda.jit(launch_bounds=(32 * WARPS, 2))
def mma(x, w, y, of):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    sums = cuda.local.array((MI, NI, 4), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    b = cuda.local.array((NI, 2), np.uint32)
    rows = cuda.local.array(WINDOWS, np.uint32)
    cols = cuda.local.array(WINDOWS, np.uint32)
    corners = cuda.local.array(WINDOWS, np.uint32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    first, first_filter = np.uint32(cuda.blockIdx.x) * np.uint32(BM), np.uint32(cuda.blockIdx.y) * np.uint32(BN)
    row, col = np.uint32(warp // WARPS_X * WM), np.uint32(warp % WARPS_X * WN)
    thread = np.uint32(warp * 32 + lane)
    a_row, a_piece = np.uint32(lane % 16), np.uint32(lane // 16)  # where this lane's row of a matrix begins
    b_row, b_piece = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    tiles = np.uint32(of.RS * of.pieces.value + np.uint32(PIECES - 1)) // np.uint32(PIECES)

    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                sums[i, j, n] = 0
    find_windows(rows, cols, corners, first + thread // PIECES, of)
    for tile in range(AHEAD):
        copy_stage(x_tiles, w_tiles, tile, x, w, rows, cols, corners, first_filter, tile, thread, of)
        ptx.cp_async_commit()
    stage, ahead, following = np.uint32(0), np.uint32(AHEAD), np.uint32(AHEAD)
    for _ in range(tiles):
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()
        if following < tiles:
            copy_stage(x_tiles, w_tiles, ahead, x, w, rows, cols, corners, first_filter, following, thread, of)
        ptx.cp_async_commit()
        for step in range(0, BK, STEP):
            for i in range(MI):
                word = (step // 4 + a_piece ^ a_row % 8) * 4
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(x_tiles, (stage, row + i * 16 + a_row, word))
            for j in range(0, NI, 2):
                word = (step // 4 + b_piece ^ b_row % 8) * 4
                b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1] = ptx.ldmatrix4(w_tiles, (stage, col + j * 8 + b_row, word))
            for i in range(MI):
                for j in range(NI):
                    ptx.mma(sums, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b[j, 0], b[j, 1]), FORMAT)
        following = np.uint32(following + 1)
        ahead, stage = stage, np.uint32(stage + 1) if stage + 1 < STAGES else np.uint32(0)

    for i in range(MI):
        for j in range(NI):
            npq, k = first + row + i * 16 + lane // 4, first_filter + col + j * 8 + lane % 4 * 2
            store_pair(y, npq, k, ptx.pack2(sums[i, j, 0], sums[i, j, 1], RESULT))
            store_pair(y, npq + 8, k, ptx.pack2(sums[i, j, 2], sums[i, j, 3], RESULT))


def geometry(problem):
    """Grid and block."""
    return (-(-problem.N * problem.P * problem.Q // BM), -(-problem.K // BN)), (32, WARPS)


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES, dtype=format.dtype)
    made, x, w, problem = prepared(x, w, problem, format, workspace)
    arguments = as_pieces(x), as_pieces(w), as_outputs(y, problem), windows(problem, format)
    return [*made, Launch(with_outputs(mma, format, problem), *geometry(problem), arguments, SHARED_BYTES)]
