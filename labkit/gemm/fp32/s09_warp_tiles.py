"""A warp computes a tile of its own, 32 x 64, and pairs of its lanes share their loads from shared memory.

So far a warp's threads formed two long rows, which need 8 x 2 values of A and 128 of B; four rows of eight need 8 x 4
and 64. A 128-bit load serves a quarter of the lanes per wavefront, or half of them where each lane loads the same
address as the next lane, or the one after that. The numbering of the lanes makes this true for both tiles: lanes 0 and
1 are side by side and share A, lanes 0 and 2 are one below the other and share B.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 4       global loads per output
    K * (1 / TM + 1 / TN) / 4       shared loads per output
    2 * (BM + BN) * BK * 4          bytes of shared memory per block
    K / BK + 1                      barriers per block
    0                               bank conflicts per block
    8                               shared load wavefronts per warp and k

Of the instructions in the loop 76% are multiply-adds (sm_90), and the others limit it: `s10_tuned` has fewer of them.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.fp32.edges import load_four
from labkit.gemm.problem import check_c_order, check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 128, 8  # a block's part of C, and its steps along K
SWIZZLE = 128 // BK  # banks between the groups of four rows of A's tile
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
    A_row, A_k = t // (BK // 4), t % (BK // 4) * 4  # this thread's first load from each tile
    B_k, B_col = t // (BN // 4), t % (BN // 4) * 4
    for next_start in range(0, K + BK, BK):  # the first iteration only loads, the last only computes
        back = next_start // BK % 2  # buffer to fill; the other one holds the current tiles
        whole = aligned and next_start + BK <= K
        # -- load next tiles to registers --
        if next_start < K:
            for i in range(A_LOADS):
                row = top + A_row + i * A_STEP
                A_next[i, 0], A_next[i, 1], A_next[i, 2], A_next[i, 3] = load_four(A, row, next_start + A_k, whole)
            for i in range(B_LOADS):
                k = next_start + B_k + i * B_STEP
                B_next[i, 0], B_next[i, 1], B_next[i, 2], B_next[i, 3] = load_four(B, k, left + B_col, whole)
        # -- multiply current tiles --
        if next_start > 0:
            for first in range(0, BK, 4):
                for k in range(first, first + 4):
                    for i in range(0, TM, 4):
                        a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(
                            A_tile, (1 - back, k, y + (i * LANES_Y ^ first // 4 * SWIZZLE))
                        )
                    for j in range(0, TN, 4):
                        b[j], b[j + 1], b[j + 2], b[j + 3] = ptx.load4(B_tile, (1 - back, k, x + j * LANES_X))
                    for i in range(TM):
                        for j in range(TN):
                            sums[i, j] += a[i] * b[j]
        # -- store next tiles to shared memory --
        if next_start < K:
            for i in range(A_LOADS):
                column = A_row + i * A_STEP ^ A_k // 4 * SWIZZLE
                for n in range(4):
                    A_tile[back, A_k + n, column] = A_next[i, n]
            for i in range(B_LOADS):
                k = B_k + i * B_STEP
                ptx.store4(B_tile, (back, k, B_col), B_next[i, 0], B_next[i, 1], B_next[i, 2], B_next[i, 3])
        cuda.syncthreads()

    # -- store C --
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
