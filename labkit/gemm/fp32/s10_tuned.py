"""Copies that bypass registers leave room in them for 16 x 8 outputs per thread and for prefetched fragments.

`cp.async` copies the next tiles while the block computes, and occupies no registers. It cannot transpose: A's tile
keeps its rows, and a thread loads four k of a row at once instead of four rows of a k. It multiplies them by four rows
of B, while the next four rows of B are being loaded from shared memory. In A's tile groups of four k are swizzled,
differently in each of four rows, so that lanes on neighbouring rows of A read different banks.

The loop has no bounds checks: a copy writes zeros for elements outside of the matrices.

Costs, for sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 4                 global loads per output
    K * ((1 + 4 / BK) / TM + 1 / TN) / 4      shared loads per output
    2 * (BM + BN) * BK * 4                    bytes of shared memory per block
    K / BK                                    barriers per block
    0                                         bank conflicts per block

Not limited by the instruction count: 90% of those in the loop are multiply-adds (sm_90), at 0.93 of cuBLAS's speed at
4096 and 0.94 at 8192 (H100). Also tried, at 4096: 8 values of k per loop iteration instead of 16, 0.90, then 64-bit
indices for the copies 0.83, or TMA in place of `cp.async` 0.87; tiles of 128 x 128 x 16, two blocks on an SM, 0.87, 256
x 128 x 16 0.83; and, without prefetching rows of B, 128 x 128 x 16 0.88, with 8 x 16 outputs per thread 0.77, with 8 x
8 0.78, with padding instead of the swizzle 0.82. Compute capability 8.0.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.problem import check_c_order, check_operands
from labkit.ladder import Launch

BM, BN, BK = 128, 256, 32  # a block's part of C, and its steps along K
WM, WN = 64, 64  # a warp's part of that
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 4
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
A_STEP, B_STEP = THREADS * 4 // BK, THREADS * 4 // BN  # rows of A and of B that the block copies at once
B_BYTE = 2 * BM * BK * 4  # where B's tiles begin in dynamic shared memory
SHARED_BYTES = B_BYTE + 2 * BK * BN * 4


@cuda.jit(device=True)
def swizzle(row, k):
    """Return the column of A's tile at which k is stored: groups of four are permuted, differently in four rows."""
    return k ^ row % 4 * 4


@cuda.jit(device=True)
def copy_tiles(A_tile, B_tile, buffer, A, B, top, left, start, t):
    """Begin this thread's copies of both tiles, for BK values of k from `start` on."""
    M, K, N = np.uint32(A.shape[0]), np.uint32(A.shape[1]), np.uint32(B.shape[1])
    zero_bytes = np.uint32(0)  # 32-bit indices, to save registers
    if K % 4 == 0 and N % 4 == 0:
        row, col = t // (BK // 4), t % (BK // 4) * 4
        for i in range(0, BM, A_STEP):
            source = np.uint32(top + row + i), np.uint32(start + col)
            valid_bytes = np.uint32(16) if source[0] < M and source[1] < K else zero_bytes
            ptx.cp_async(A_tile, (buffer, row + i, swizzle(row + i, col)), A, source, 16, valid_bytes)
        row, col = t // (BN // 4), t % (BN // 4) * 4
        for i in range(0, BK, B_STEP):
            source = np.uint32(start + row + i), np.uint32(left + col)
            valid_bytes = np.uint32(16) if source[0] < K and source[1] < N else zero_bytes
            ptx.cp_async(B_tile, (buffer, row + i, col), B, source, 16, valid_bytes)
    else:  # unaligned rows: value by value
        for n in range(t, BM * BK, THREADS):
            row, col = n // BK, n % BK
            valid_bytes = np.uint32(4) if top + row < M and start + col < K else zero_bytes
            ptx.cp_async(A_tile, (buffer, row, swizzle(row, col)), A, (top + row, start + col), 4, valid_bytes)
        for n in range(t, BK * BN, THREADS):
            row, col = n // BN, n % BN
            valid_bytes = np.uint32(4) if start + row < K and left + col < N else zero_bytes
            ptx.cp_async(B_tile, (buffer, row, col), B, (start + row, left + col), 4, valid_bytes)
    ptx.cp_async_commit()


@cuda.jit(device=True)
def load_rows(b, B_tile, buffer, k, x):
    """Load this thread's part of four rows of B."""
    for n in range(4):
        for j in range(0, TN, 4):
            b[n, j], b[n, j + 1], b[n, j + 2], b[n, j + 3] = ptx.load4(B_tile, (buffer, k + n, x + j * LANES_X))


@cuda.jit(device=True)
def multiply(sums, A_tile, buffer, k, y, b):
    """Add the products of A's columns from k to k + 3 and the four rows of B in `b`."""
    a = cuda.local.array(4, np.float32)
    for i in range(TM):
        row = y + i * LANES_Y
        a[0], a[1], a[2], a[3] = ptx.load4(A_tile, (buffer, row, swizzle(row, k)))
        for n in range(4):
            for j in range(TN):
                sums[i, j] += a[n] * b[n, j]


@cuda.jit(launch_bounds=(THREADS, 1))  # one block on an SM
def tuned(A, B, C):
    A_tile = ptx.shared_array(0, (2, BM, BK), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, BN), np.float32)
    sums = cuda.local.array((TM, TN), np.float32)
    b = cuda.local.array((4, TN), np.float32)
    b_next = cuda.local.array((4, TN), np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y, x = warp // WARPS_X * WM + lane_y, warp % WARPS_X * WN + lane_x * 4
    t = np.uint32(warp * 32 + lane)
    M, K = A.shape
    N = B.shape[1]

    for i in range(TM):
        for j in range(TN):
            sums[i, j] = 0
    buffer = np.uint32(0)
    copy_tiles(A_tile, B_tile, buffer, A, B, top, left, np.uint32(0), t)
    for start in range(0, K, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        copy_tiles(A_tile, B_tile, buffer ^ np.uint32(1), A, B, top, left, np.uint32(start + BK), t)
        load_rows(b, B_tile, buffer, 0, x)
        for k in range(0, BK, 16):
            load_rows(b_next, B_tile, buffer, k + 4, x)
            multiply(sums, A_tile, buffer, k, y, b)
            load_rows(b, B_tile, buffer, k + 8, x)
            multiply(sums, A_tile, buffer, k + 4, y, b_next)
            load_rows(b_next, B_tile, buffer, k + 12, x)
            multiply(sums, A_tile, buffer, k + 8, y, b)
            load_rows(b, B_tile, buffer, (k + 16) % BK, x)  # wasted in the last iteration, but free of branches
            multiply(sums, A_tile, buffer, k + 12, y, b_next)
        buffer = buffer ^ np.uint32(1)

    for i in range(TM):
        row = top + y + i * LANES_Y
        for j in range(0, TN, 4):
            col = left + x + j * LANES_X
            if N % 4 == 0 and row < M and col < N:
                ptx.store4(C, (row, col), sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3])
            elif row < M:
                for n in range(4):
                    if col + n < N:
                        C[row, col + n] = sums[i, j + n]


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BN), -(-M // BM)), (32, WARPS_Y * WARPS_X)


def launches(A, B, C):
    """C = A @ B."""
    M, N, _ = check_operands(A, B, C)
    check_c_order(A, B, C)
    return [Launch(tuned, *geometry(M, N), (A, B, C), SHARED_BYTES)]
