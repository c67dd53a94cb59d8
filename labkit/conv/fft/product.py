"""Complex matrix products, one per frequency: C[bin] = A[bin].T @ B[bin], real and imaginary parts interleaved.

A warp computes a tile of its own and its lanes share what they load, as in `gemm/fp32/s09_warp_tiles`. Copies bypass
registers, as in `s10_tuned`. A complex product takes four multiply-adds for four loaded numbers, a real one one for
two. So shared memory delivers half as much per multiply-add.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.ladder import Launch

BM, BN, BK = 128, 64, 16  # tile of a block in C, and its step along the sum
WM, WN = 32, 32  # tile of a warp
LANES_Y, LANES_X = 4, 8  # lanes of a warp
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 2
A_VALUES, B_VALUES = 2 * TM, 2 * TN  # floats of its fragments
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
A_WIDTH, B_WIDTH = 2 * BM, 2 * BN  # elements of a row of a tile
B_BYTE = 2 * BK * A_WIDTH * 4  # where B's tiles begin in dynamic shared memory


@cuda.jit(device=True)
def copy_tile(tile, buffer, X, start, n0, shape, width, thread):
    """Start this thread's copies of BK rows of X from `start` on, and of `width` complex numbers from `n0` on.

    Elements beyond the `shape` of X are zero. A copy has 16 bytes: two numbers.
    """
    pairs = width // 2
    row, col = thread // pairs, thread % pairs * 2
    index = np.uint32(n0 + col)
    valid_bytes = np.uint32(0)
    if index < shape[1]:
        valid_bytes = np.uint32(16) if index + 1 < shape[1] else np.uint32(8)
    for i in range(0, BK, THREADS // pairs):
        k = np.uint32(start + row + i)
        valid = valid_bytes if k < shape[0] else np.uint32(0)
        ptx.cp_async(tile, (buffer, np.uint32(row + i), np.uint32(2 * col)), X, (k, np.uint32(2 * index)), 16, valid)


@cuda.jit(device=True)
def load_row(a, b, A_tile, B_tile, buffer, k, y, x):
    """Load this thread's numbers of a row of both tiles."""
    for i in range(0, A_VALUES, 4):
        a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(A_tile, (buffer, k, y + i * LANES_Y))
    for j in range(0, B_VALUES, 4):
        b[j], b[j + 1], b[j + 2], b[j + 3] = ptx.load4(B_tile, (buffer, k, x + j * LANES_X))


@cuda.jit(device=True)
def add_products(acc, a, b):
    """Add the complex products of all numbers in `a` and all in `b`."""
    for i in range(TM):
        for j in range(0, B_VALUES, 2):
            acc[i, j] += a[2 * i] * b[j]
            acc[i, j + 1] += a[2 * i] * b[j + 1]
            acc[i, j] -= a[2 * i + 1] * b[j + 1]
            acc[i, j + 1] += a[2 * i + 1] * b[j]


@cuda.jit(launch_bounds=(THREADS, 2))  # two blocks on an SM
def multiply(A, B, C, M, N, K):
    """C[bin] (M x N) = A[bin].T @ B[bin], sums over K."""
    A_tile = ptx.shared_array(0, (2, BK, A_WIDTH), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, B_WIDTH), np.float32)
    acc = cuda.local.array((TM, B_VALUES), np.float32)
    a = cuda.local.array(A_VALUES, np.float32)
    b = cuda.local.array(B_VALUES, np.float32)
    a_next = cuda.local.array(A_VALUES, np.float32)
    b_next = cuda.local.array(B_VALUES, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    m0, n0 = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    z = cuda.blockIdx.z
    A_bin, B_bin, C_bin = A[z], B[z], C[z]
    lane_y, lane_x = lane // 2 % 2 + lane // (2 * LANES_X) * 2, lane % 2 + lane // 4 % (LANES_X // 2) * 2
    y = np.uint32(2 * (warp // WARPS_X * WM + 2 * lane_y))  # in elements of a row of the tiles
    x = np.uint32(2 * (warp % WARPS_X * WN + 2 * lane_x))
    thread = np.uint32(warp * 32 + lane)
    A_shape = np.uint32(K), np.uint32(M)
    B_shape = np.uint32(K), np.uint32(N)

    for i in range(TM):
        for j in range(B_VALUES):
            acc[i, j] = 0
    buffer = np.uint32(0)
    copy_tile(A_tile, buffer, A_bin, np.uint32(0), m0, A_shape, BM, thread)
    copy_tile(B_tile, buffer, B_bin, np.uint32(0), n0, B_shape, BN, thread)
    ptx.cp_async_commit()
    for start in range(0, K, BK):
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        next_buffer, following = buffer ^ np.uint32(1), np.uint32(start + BK)
        copy_tile(A_tile, next_buffer, A_bin, following, m0, A_shape, BM, thread)
        copy_tile(B_tile, next_buffer, B_bin, following, n0, B_shape, BN, thread)
        ptx.cp_async_commit()
        load_row(a, b, A_tile, B_tile, buffer, 0, y, x)
        for k in range(0, min(BK, K - start), 2):  # beyond K there are zeros
            load_row(a_next, b_next, A_tile, B_tile, buffer, k + 1, y, x)
            add_products(acc, a, b)
            load_row(a, b, A_tile, B_tile, buffer, (k + 2) % BK, y, x)  # unused in the last iteration: saves a branch
            add_products(acc, a_next, b_next)
        buffer = next_buffer

    for i in range(TM):
        row = m0 + y // 2 + i // 2 * 2 * LANES_Y + i % 2
        for j in range(0, B_VALUES, 4):
            col = 2 * n0 + x + j * LANES_X
            if row < M and col + 2 < 2 * N:
                ptx.store4(C_bin, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
            elif row < M and col < 2 * N:
                ptx.store2(C_bin, (row, col), acc[i, j], acc[i, j + 1])


@cache
def _specialise(rows, cols, steps):
    """Return the kernel for tiles of rows x cols and `steps` steps, its warps, and its bytes of shared memory."""
    lanes_x = min(LANES_X, cols // TN)
    WM, WN = 32 // lanes_x * TM, lanes_x * TN
    lanes = {"LANES_Y": 32 // lanes_x, "LANES_X": lanes_x}
    kernel = specialise(multiply, BM=rows, BN=cols, BK=steps, WM=WM, WN=WN, **lanes)
    return kernel, rows // WM * (cols // WN), 2 * steps * 2 * (rows + cols) * 4


def choose_tile(M: int, N: int, K: int) -> tuple[int, int, int]:
    """Return rows and columns of a block's tile, and its step along K: smaller ones for small results."""
    cols = next((cols for cols in (16, 32) if cols >= N), BN)
    rows = next((rows for rows in (32, 64) if rows >= M and rows * cols >= 32 * TM * TN), BM)
    return rows, cols, BK if K > BK // 2 else BK // 2


def make_product(A, B, C, M: int, N: int, K: int) -> Launch:
    """Return the launch of C[bin] (M x N) = A[bin].T (M x K) @ B[bin] (K x N), for arrays of `allocate_spectra`."""
    rows, cols, steps = choose_tile(M, N, K)
    kernel, warps, shared_bytes = _specialise(rows, cols, steps)
    grid = -(-N // cols), -(-M // rows), C.shape[0]
    return Launch(kernel, grid, (32, warps), (A, B, C, M, N, K), shared_bytes)
