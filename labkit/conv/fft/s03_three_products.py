"""A complex product takes three real ones instead of four.

    (a + bi)(c + di) = (ac - bd) + ((a + b)(c + d) - ac - bd) i

The sums of ac, of bd and of (a + b)(c + d) are kept apart until the end. Additions to prepare a row take little: a
thread makes TM + TN of them for TM * TN products. But it keeps three numbers for each output instead of two, and so
there are fewer threads on an SM. Imaginary parts lose a little: they are the difference of numbers that may be larger.
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 23.2.4.)

Costs, for each complex product of numbers in shared memory:

    3                           multiply-adds
    1 / TM + 1 / TN             additions
    (2 / TM + 2 / TN) / 4       shared loads

Limited by the multiply-adds, where there are many channels.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.fft.s02_tiled import TAKES, allocate_spectra, choose_tiles, make_inverse, make_transform
from labkit.ladder import Launch

FACTORS = 3  # real products in a complex one
BM, BN, BK = 64, 64, 16  # a block's part of the result, and its steps along the sum
WM, WN = 32, 32  # a warp's part of that
LANES_Y, LANES_X = 4, 8  # its lanes
TM, TN = WM // LANES_Y, WN // LANES_X  # outputs of a thread, in groups of 1 x 2
A_OWN, B_OWN = 2 * TM, 2 * TN  # elements that make them
WARPS_Y, WARPS_X = BM // WM, BN // WN
THREADS = 32 * WARPS_Y * WARPS_X
WIDTH = 2 * BM  # elements of a row of a tile
B_BYTE = 2 * BK * WIDTH * 4  # where B's tiles begin in dynamic shared memory
SHARED_BYTES = 2 * B_BYTE


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


@cuda.jit(device=True)
def load_row(a, b, A_tile, B_tile, buffer, k, y, x):
    """Loads this thread's numbers of a row of both tiles."""
    for i in range(0, A_OWN, 4):
        a[i], a[i + 1], a[i + 2], a[i + 3] = ptx.load4(A_tile, (buffer, k, y + i * LANES_Y))
    for j in range(0, B_OWN, 4):
        b[j], b[j + 1], b[j + 2], b[j + 3] = ptx.load4(B_tile, (buffer, k, x + j * LANES_X))


@cuda.jit(device=True)
def add_products(of_re, of_im, of_both, a, b):
    """Adds the products of real parts, of imaginary parts, and of the sums of both."""
    for i in range(TM):
        for j in range(TN):
            of_re[i, j] += a[2 * i] * b[2 * j]
            of_im[i, j] += a[2 * i + 1] * b[2 * j + 1]
    for i in range(TM):
        a[2 * i] += a[2 * i + 1]
    for j in range(TN):
        b[2 * j] += b[2 * j + 1]
    for i in range(TM):
        for j in range(TN):
            of_both[i, j] += a[2 * i] * b[2 * j]


@cuda.jit(launch_bounds=(THREADS, 3))  # three blocks on an SM: 168 registers
def three_products(A, B, C, M, N, K):
    """C[bin] (M x N) = A[bin].T @ B[bin], sums over K."""
    A_tile = ptx.shared_array(0, (2, BK, WIDTH), np.float32)
    B_tile = ptx.shared_array(B_BYTE, (2, BK, WIDTH), np.float32)
    of_re = cuda.local.array((TM, TN), np.float32)
    of_im = cuda.local.array((TM, TN), np.float32)
    of_both = cuda.local.array((TM, TN), np.float32)
    a = cuda.local.array(A_OWN, np.float32)
    b = cuda.local.array(B_OWN, np.float32)
    # unsigned, so that the compiler knows: no index below counts from the end
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * np.uint32(BM), np.uint32(cuda.blockIdx.x) * np.uint32(BN)
    z = cuda.blockIdx.z
    A_bin, B_bin, C_bin = A[z], B[z], C[z]
    lane_y, lane_x = lane // 2 % 2 + lane // 16 * 2, lane % 2 + lane // 4 % 4 * 2
    y = np.uint32(2 * (warp // WARPS_X * WM + 2 * lane_y))  # in elements of a row of the tiles
    x = np.uint32(2 * (warp % WARPS_X * WN + 2 * lane_x))
    t = np.uint32(warp * 32 + lane)
    A_sides = np.uint32(K), np.uint32(M)
    B_sides = np.uint32(K), np.uint32(N)

    for i in range(TM):
        for j in range(TN):
            of_re[i, j] = 0
            of_im[i, j] = 0
            of_both[i, j] = 0
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
        for k in range(0, min(BK, K - start), 2):  # beyond K there are zeros
            load_row(a, b, A_tile, B_tile, now, k, y, x)
            add_products(of_re, of_im, of_both, a, b)
            load_row(a, b, A_tile, B_tile, now, k + 1, y, x)
            add_products(of_re, of_im, of_both, a, b)
        now = other

    for i in range(TM):
        row = top + y // 2 + i // 2 * 2 * LANES_Y + i % 2
        for j in range(TN):
            of_both[i, j] -= of_re[i, j] + of_im[i, j]
            of_re[i, j] -= of_im[i, j]
        for j in range(0, TN, 2):
            col = 2 * left + x + 2 * j * LANES_X
            if row < M and col + 2 < 2 * N:
                ptx.store4(C_bin, (row, col), of_re[i, j], of_both[i, j], of_re[i, j + 1], of_both[i, j + 1])
            elif row < M and col < 2 * N:
                ptx.store2(C_bin, (row, col), of_re[i, j], of_both[i, j])


def product(A, B, C, M: int, N: int, K: int) -> Launch:
    """The launch of C[bin] (M x N) = A[bin].T (M x K) @ B[bin] (K x N), for arrays of `allocate_spectra`."""
    grid = -(-N // BN), -(-M // BM), C.shape[0]
    return Launch(three_products, grid, (32, WARPS_Y * WARPS_X), (A, B, C, M, N, K), SHARED_BYTES)


def launches(x, w, y, problem, workspace):
    """y, of images x and filters w."""
    problem.check(x, w, y, takes=TAKES)
    R, S, K, C = problem.R, problem.S, problem.K, problem.C
    side, step, tiles = choose_tiles(problem)
    count = problem.N * tiles[0] * tiles[1]
    filters = allocate_spectra(workspace, "filters", side, C, K)
    images = allocate_spectra(workspace, "images", side, C, count)
    outputs = allocate_spectra(workspace, "outputs", side, K, count)
    first = (R - 1, S - 1) if problem.flipped else (0, 0)
    return [
        make_transform(w, filters, side, False, not problem.flipped, 0, 0, R, S, R, S, 1, 1),
        make_transform(x, images, side, False, False, problem.top, problem.left, side, side, *step, *tiles),
        product(filters, images, outputs, K, count, C),
        make_inverse(outputs, y, side, False, *first, *step, *tiles),
    ]
