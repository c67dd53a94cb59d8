"""A complex product for each frequency: C[bin] = A[bin].T @ B[bin], real and imaginary parts side by side.

A warp computes a tile of its own and its lanes share what they load, as in `gemm/fp32/s09_warp_tiles`; copies pass the
registers by, as in `s10_tuned`. A complex product takes four multiply-adds for the four numbers that it loads, a real
one one for two: what shared memory must give for each is half.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.ladder import Launch

BM, BN, BK = 128, 64, 16  # a block's part of C, and its steps along the sum
WM, WN = 32, 32  # a warp's part of that
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 2
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
A_WIDTH, B_WIDTH = 2 * BM, 2 * BN  # elements of a row of a tile
B_BYTE = 2 * BK * A_WIDTH * 4  # where B's tiles begin in dynamic shared memory
SHARED_BYTES = B_BYTE + 2 * BK * B_WIDTH * 4


@cuda.jit(device=True)
def copy_tile(tile, buffer, X, start, left, sides, width, t):
    """Begins this thread's copies of BK rows of X from `start` on, and of so many complex numbers from `left` on.

    What lies beyond the `sides` of X is zero. A copy has 16 bytes: two numbers.
    """
    pairs = width // 2
    row, col = t // pairs, t % pairs * 2
    place = np.uint32(left + col)
    there = np.uint32(0)
    if place < sides[1]:
        there = np.uint32(16) if place + 1 < sides[1] else np.uint32(8)
    for i in range(0, BK, THREADS // pairs):
        k = np.uint32(start + row + i)
        valid = there if k < sides[0] else np.uint32(0)
        ptx.cp_async(tile, (buffer, np.uint32(row + i), np.uint32(2 * col)), X, (k, np.uint32(2 * place)), 16, valid)


@cuda.jit(launch_bounds=(THREADS, 2))
def multiply(A, B, C, M, N, K):
    """C[bin] (M x N) = A[bin].T @ B[bin], sums over K."""
    A_tile = ptx.shared_array(0, (2, BK, A_WIDTH), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, B_WIDTH), np.float32)
    sums_re = cuda.local.array((TM, TN), np.float32)
    sums_im = cuda.local.array((TM, TN), np.float32)
    a_re = cuda.local.array(TM, np.float32)
    a_im = cuda.local.array(TM, np.float32)
    b_re = cuda.local.array(TN, np.float32)
    b_im = cuda.local.array(TN, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    z = cuda.blockIdx.z
    A_bin, B_bin, C_bin = A[z], B[z], C[z]
    y = np.uint32(warp // WARPS_X * WM + (lane // 2 % 2 + lane // 16 * 2) * 2)
    x = np.uint32(warp % WARPS_X * WN + (lane % 2 + lane // 4 % 4 * 2) * 2)
    t = np.uint32(warp * 32 + lane)
    A_sides = np.uint32(K), np.uint32(M)
    B_sides = np.uint32(K), np.uint32(N)

    for i in range(TM):
        for j in range(TN):
            sums_re[i, j] = 0
            sums_im[i, j] = 0
    now = np.uint32(0)
    copy_tile(A_tile, now, A_bin, np.uint32(0), top, A_sides, BM, t)
    copy_tile(B_tile, now, B_bin, np.uint32(0), left, B_sides, BN, t)
    ptx.cp_async_commit()
    for start in range(0, K, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        other, following = now ^ np.uint32(1), np.uint32(start + BK)
        copy_tile(A_tile, other, A_bin, following, top, A_sides, BM, t)
        copy_tile(B_tile, other, B_bin, following, left, B_sides, BN, t)
        ptx.cp_async_commit()
        for first in range(0, BK, 4):
            for n in range(4):
                k = first + n
                for i in range(0, TM, 2):
                    a_re[i], a_im[i], a_re[i + 1], a_im[i + 1] = ptx.load4(A_tile, (now, k, 2 * (y + i * LANES_Y)))
                for j in range(0, TN, 2):
                    b_re[j], b_im[j], b_re[j + 1], b_im[j + 1] = ptx.load4(B_tile, (now, k, 2 * (x + j * LANES_X)))
                for i in range(TM):
                    for j in range(TN):
                        sums_re[i, j] += a_re[i] * b_re[j]
                        sums_im[i, j] += a_re[i] * b_im[j]
                        sums_re[i, j] -= a_im[i] * b_im[j]
                        sums_im[i, j] += a_im[i] * b_re[j]
        now = other

    for i in range(TM):
        row = top + y + i // 2 * 2 * LANES_Y + i % 2
        for j in range(0, TN, 2):
            col = left + x + j * LANES_X
            if row < M and col + 1 < N:
                ptx.store4(C_bin, (row, 2 * col), sums_re[i, j], sums_im[i, j], sums_re[i, j + 1], sums_im[i, j + 1])
            elif row < M and col < N:
                ptx.store2(C_bin, (row, 2 * col), sums_re[i, j], sums_im[i, j])


def product(A, B, C, M: int, N: int, K: int) -> Launch:
    """The launch of C[bin] (M x N) = A[bin].T (M x K) @ B[bin] (K x N), for arrays of `spectra`."""
    grid = -(-N // BN), -(-M // BM), C.shape[0]
    return Launch(multiply, grid, (32, WARPS_Y * WARPS_X), (A, B, C, M, N, K), SHARED_BYTES)
