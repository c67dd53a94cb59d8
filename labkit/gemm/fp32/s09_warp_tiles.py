"""A warp computes a tile of its own, 32 x 64, and its lanes share what they load from shared memory two by two.

So far a warp's threads stood in two long rows, and needed 8 x 2 values of A and 128 of B. Standing four by eight they
need 8 x 4 and 64. And a 128-bit load serves a quarter of the lanes in a pass, or half of them where each lane wants
the same as the lane next to it, or as the one after that. Lanes are numbered so that this holds for either tile: lane 0
and 1 stand side by side and share A, lane 0 and 2 stand one below the other and share B.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 4       global loads per output
    K * (1 / TM + 1 / TN) / 4       shared loads per output
    2 * (BM + BN) * BK * 4          bytes of shared memory per block
    K / BK + 1                      barriers per block
    0                               bank conflicts per block
    8                               shared load wavefronts per warp and k

Limited by the instructions around the multiply-adds; `s10_tuned` chooses the sizes and counts registers.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.fp32.edges import load_four
from labkit.gemm.problem import check_c_order, check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 128, 8  # a block's part of C, and its steps along K
TWIST = 128 // BK  # how many banks apart the groups of four rows of A's tile are stored
WM, WN = 32, 64  # a warp's part of that
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 4 x 4
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
A_LOADS, B_LOADS = BM * BK // 4 // THREADS, BK * BN // 4 // THREADS  # 128-bit loads of a thread for each tile
A_STEP, B_STEP = BM // A_LOADS, BK // B_LOADS  # rows of A and of B that the block loads at once


@cuda.jit
def warp_tiles(A, B, C):
    A_tile = cuda.shared.array((2, BK, BM), np.float32, alignment=16)
    B_tile = cuda.shared.array((2, BK, BN), np.float32, alignment=16)
    A_next = cuda.local.array((A_LOADS, 4), np.float32)
    B_next = cuda.local.array((B_LOADS, 4), np.float32)
    sums = cuda.local.array((TM, TN), np.float32)
    a = cuda.local.array(TM, np.float32)
    b = cuda.local.array(TN, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * BM, np.uint32(cuda.blockIdx.x) * BN
    y = warp // WARPS_X * WM + (lane // 2 % 2 + lane // 16 * 2) * 4
    x = warp % WARPS_X * WN + (lane % 2 + lane // 4 % 4 * 2) * 4
    t = warp * 32 + lane
    M, K = A.shape
    N = B.shape[1]
    aligned = K % 4 == 0 and N % 4 == 0 and top + BM <= M and left + BN <= N

    for i in range(TM):
        for j in range(TN):
            sums[i, j] = 0
    A_row, A_k = t // (BK // 4), t % (BK // 4) * 4  # what this thread loads first, of either tile
    B_k, B_col = t // (BN // 4), t % (BN // 4) * 4
    for following in range(0, K + BK, BK):  # in the first pass there is nothing to compute, in the last to load
        other = following // BK % 2
        whole = aligned and following + BK <= K
        if following < K:
            for i in range(A_LOADS):
                row = top + A_row + i * A_STEP
                A_next[i, 0], A_next[i, 1], A_next[i, 2], A_next[i, 3] = load_four(A, row, following + A_k, whole)
            for i in range(B_LOADS):
                k = following + B_k + i * B_STEP
                B_next[i, 0], B_next[i, 1], B_next[i, 2], B_next[i, 3] = load_four(B, k, left + B_col, whole)
        if following > 0:
            for first in range(0, BK, 4):
                for k in range(first, first + 4):
                    for i in range(0, TM, 4):
                        a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(
                            A_tile, (1 - other, k, y + (i * LANES_Y ^ first // 4 * TWIST))
                        )
                    for j in range(0, TN, 4):
                        b[j], b[j + 1], b[j + 2], b[j + 3] = ptx.load4(B_tile, (1 - other, k, x + j * LANES_X))
                    for i in range(TM):
                        for j in range(TN):
                            sums[i, j] += a[i] * b[j]
        if following < K:
            for i in range(A_LOADS):
                place = A_row + i * A_STEP ^ A_k // 4 * TWIST
                for n in range(4):
                    A_tile[other, A_k + n, place] = A_next[i, n]
            for i in range(B_LOADS):
                k = B_k + i * B_STEP
                ptx.store4(B_tile, (other, k, B_col), B_next[i, 0], B_next[i, 1], B_next[i, 2], B_next[i, 3])
        cuda.syncthreads()

    for i in range(TM):
        row = top + y + i // 4 * 4 * LANES_Y + i % 4
        for j in range(0, TN, 4):
            col = left + x + j * LANES_X
            if aligned:
                ptx.store4(C, (row, col), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
            else:
                for n in range(4):
                    if row < M and col + n < N:
                        C[row, col + n] = sums[i, j + n]


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BN), -(-M // BM)), (32, WARPS_Y * WARPS_X)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    check_c_order(A, B, C)
    return [Launch(warp_tiles, *geometry(M, N), (A, B, C))]
