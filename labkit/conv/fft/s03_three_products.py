"""A complex product takes three real ones instead of four.

    (a + bi)(c + di) = (ac - bd) + ((a + b)(c + d) - ac - bd) i

Three accumulators hold the sums of ac, of bd and of (a + b)(c + d) until the end. Additions to prepare a row are cheap:
a thread needs TM + TN of them for TM * TN products. But three accumulators per output instead of two leave fewer
threads on an SM. Imaginary parts lose a little accuracy, as differences of numbers that may be larger. (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, section 23.2.4.)

Costs, for each complex product of numbers in shared memory:

    3                           multiply-adds
    1 / TM + 1 / TN             additions
    (2 / TM + 2 / TN) / 4       shared loads

Limited by the multiply-adds, with many channels.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.fft import s02_tiled
from labkit.conv.fft.s02_tiled import launches as tiled_launches
from labkit.ladder import Launch

SUPPORTED = s02_tiled.SUPPORTED
FACTORS = 3  # real products in a complex one
BM, BN, BK = 64, 64, 16  # tile of a block, and its step along the sum
WM, WN = 32, 32  # tile of a warp
LANES_Y, LANES_X = 4, 8  # lanes of a warp
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 2
A_VALUES, B_VALUES = 2 * TM, 2 * TN  # floats of its fragments
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
WIDTH = 2 * BM  # elements of a row of a tile
B_BYTE = 2 * BK * WIDTH * 4  # where B's tiles begin in dynamic shared memory
SHARED_BYTES = 2 * B_BYTE


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
def add_products(acc_re, acc_im, acc_both, a, b):
    """Add the products of real parts, of imaginary parts, and of the sums of both."""
    for i in range(TM):
        for j in range(TN):
            acc_re[i, j] += a[2 * i] * b[2 * j]
            acc_im[i, j] += a[2 * i + 1] * b[2 * j + 1]
    for i in range(TM):
        a[2 * i] += a[2 * i + 1]
    for j in range(TN):
        b[2 * j] += b[2 * j + 1]
    for i in range(TM):
        for j in range(TN):
            acc_both[i, j] += a[2 * i] * b[2 * j]


@cuda.jit(launch_bounds=(THREADS, 3))  # three blocks on an SM: 168 registers
def three_products(A, B, C, M, N, K):
    """C[bin] (M x N) = A[bin].T @ B[bin], sums over K."""
    A_tile = ptx.shared_array(0, (2, BK, WIDTH), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, WIDTH), np.float32)
    acc_re = cuda.local.array((TM, TN), np.float32)
    acc_im = cuda.local.array((TM, TN), np.float32)
    acc_both = cuda.local.array((TM, TN), np.float32)
    a = cuda.local.array(A_VALUES, np.float32)
    b = cuda.local.array(B_VALUES, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    m0, n0 = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    z = cuda.blockIdx.z
    A_bin, B_bin, C_bin = A[z], B[z], C[z]
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y = np.uint32(2 * (warp // WARPS_X * WM + 2 * lane_y))  # in elements of a row of the tiles
    x = np.uint32(2 * (warp % WARPS_X * WN + 2 * lane_x))
    thread = np.uint32(warp * 32 + lane)
    A_shape = np.uint32(K), np.uint32(M)
    B_shape = np.uint32(K), np.uint32(N)

    for i in range(TM):
        for j in range(TN):
            acc_re[i, j] = 0
            acc_im[i, j] = 0
            acc_both[i, j] = 0
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
        for k in range(0, min(BK, K - start), 2):  # beyond K there are zeros
            load_row(a, b, A_tile, B_tile, buffer, k, y, x)
            add_products(acc_re, acc_im, acc_both, a, b)
            load_row(a, b, A_tile, B_tile, buffer, k + 1, y, x)
            add_products(acc_re, acc_im, acc_both, a, b)
        buffer = next_buffer

    for i in range(TM):
        row = m0 + y // 2 + i // 2 * 2 * LANES_Y + i % 2
        for j in range(TN):
            acc_both[i, j] -= acc_re[i, j] + acc_im[i, j]
            acc_re[i, j] -= acc_im[i, j]
        for j in range(0, TN, 2):
            col = 2 * n0 + x + 2 * j * LANES_X
            if row < M and col + 2 < 2 * N:
                ptx.store4(C_bin, (row, col), acc_re[i, j], acc_both[i, j], acc_re[i, j + 1], acc_both[i, j + 1])
            elif row < M and col < 2 * N:
                ptx.store2(C_bin, (row, col), acc_re[i, j], acc_both[i, j])


def product(A, B, C, M: int, N: int, K: int) -> Launch:
    """The launch of C[bin] (M x N) = A[bin].T (M x K) @ B[bin] (K x N), for arrays of `allocate_spectra`."""
    grid = -(-N // BN), -(-M // BM), C.shape[0]
    return Launch(three_products, grid, (32, WARPS_Y * WARPS_X), (A, B, C, M, N, K), SHARED_BYTES)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w: `s02_tiled` with this product."""
    return tiled_launches(x, w, y, problem, workspace, product=product)
