"""A filter has few taps: its spectrum is summed directly, which skips the zeros of a transform.

For each column v of the spectrum a thread sums the S taps of each row, times roots of unity. For each u in that column
it then has a polynomial of R terms in one root of unity, and Horner's rule takes four multiply-adds per term. For
common filters that is less than a transform. Lanes are neighbouring filters, so a warp writes 256 contiguous bytes of a
row. With few images, the spectra of filters take more time than those of images; there the gain counts.

Costs, for each number of a spectrum:

    4 * (R - 1) + 2 * R * S / T     multiply-adds
    R * S / T                       shared loads

Limited by the memory to which spectra are written, with small filters.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.fft import s03_three_products
from labkit.conv.fft.lines import MAX_POINTS, ROOTS_IM, ROOTS_RE
from labkit.conv.fft.problem import MAX_TAPS
from labkit.conv.fft.product import make_product
from labkit.conv.fft.s02_tiled import SUPPORTED, as_planes, choose_tiles
from labkit.ladder import Launch

FACTORS = s03_three_products.FACTORS
LARGEST = ((32, 2, 8, 8, 128, 3, 3),)  # N, C, H, W, K, R, S
T = 16  # points of a side of a tile
R, S = 3, 3  # rows and columns of a filter's taps
HALF = T // 2
TAPS = R * S
LANES = 33  # elements from one tap to the next in shared memory
WARPS = 8
NARROW = 32  # side of a result that fits the tiles of four products better than those of three


@cuda.jit
def few_taps(w, spectra, sign):
    """Write the spectra of w[k, c] to [bin, c, k]; `sign` is -1 for conjugates."""
    taps = ptx.shared_array(0, (TAPS, LANES), np.float32)
    row_re = cuda.local.array(R, np.float32)
    row_im = cuda.local.array(R, np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    c, first = cuda.blockIdx.y, np.uint32(cuda.blockIdx.x) * np.uint32(32)
    for n in range(warp * 32 + lane, TAPS * 32, WARPS * 32):
        k = np.uint32(min(first + n // TAPS, w.shape[0] - 1))
        taps[n % TAPS, n // TAPS] = w[k, c, n % TAPS]
    cuda.syncthreads()
    column = np.uint32(first + lane)
    for v in range(warp, HALF + 1, WARPS):
        for r in range(R):
            row_re[r], row_im[r] = 0, 0
        for s in range(S):
            root = v * s % T * (MAX_POINTS // T)
            for r in range(R):
                row_re[r] += taps[r * S + s, lane] * ROOTS_RE[root]
                row_im[r] += taps[r * S + s, lane] * ROOTS_IM[root]
        whole = v > 0 and v < HALF
        begin = v * T + 2 if whole else v // HALF * (HALF + 1)
        for u in range(T if whole else HALF + 1):
            root_re, root_im = ROOTS_RE[u * (MAX_POINTS // T)], ROOTS_IM[u * (MAX_POINTS // T)]
            re, im = row_re[R - 1], row_im[R - 1]
            for r in range(1, R):
                next_re = row_re[R - 1 - r] + re * root_re
                next_im = row_im[R - 1 - r] + re * root_im
                re, im = next_re - im * root_im, next_im + im * root_re
            if column < w.shape[0]:
                ptx.store2(spectra, (begin + u, c, 2 * column), re, sign * im)


@cache
def _specialise(side, rows, cols):
    """Return the kernel for tiles of side x side and filters of rows x cols taps."""
    return specialise(few_taps, T=side, R=rows, S=cols)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w; filters of many taps are transformed as before."""
    problem.check(x, w, y, supported=SUPPORTED)
    filter_transform, image_transform, product, inverse = s03_three_products.launches(x, w, y, problem, workspace)
    *_, M, N, _ = product.arguments
    if min(M, N) <= NARROW:
        product = make_product(*product.arguments)
    if max(problem.R, problem.S) <= MAX_TAPS:
        side, *_ = choose_tiles(problem)
        arguments = as_planes(w), filter_transform.arguments[3], np.float32(1 if problem.flipped else -1)
        grid, shared_bytes = (-(-problem.K // 32), problem.C), problem.R * problem.S * LANES * 4
        filter_transform = Launch(_specialise(side, problem.R, problem.S), grid, (32, WARPS), arguments, shared_bytes)
    return [filter_transform, image_transform, product, inverse]
