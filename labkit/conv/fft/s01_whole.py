"""Whole images are transformed: a sum over R x S taps becomes a product for each frequency.

The transform of a circular correlation is the product of the image's transform and the conjugate of the filter's. A
convolution, with the filter rotated, needs no conjugate. So images and filters are padded to T x T, where T is a power
of two, and transformed. They are multiplied and summed over channels at each frequency, and transformed back. Only the
last R - 1 rows wrap around, or with a flipped filter the first ones; these outputs are cut off.

The transform is the one of textbooks: a bit reversal permutes elements, then log2(T) passes in shared memory combine
pairs. Pixels are real, so frequency (T - u, T - v) is the conjugate of (u, v), and T / 2 + 1 columns suffice.

Costs:

    T * (T // 2 + 1)                        frequencies
    8 * T * (T + 1)                         bytes of shared memory per block
    2 * log2(T) + 3                         barriers per block
    2 * C                                   global loads of 8 bytes per output of the product

Limited by the product, in which each thread loads all its operands itself; and filters become as large as images.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.fft.lines import MAX_POINTS, ROOTS_IM, ROOTS_RE
from labkit.conv.problem import PLAIN_NCHW
from labkit.ladder import Launch, TooLarge

SUPPORTED = PLAIN_NCHW | {"result": ("y",)}  # fields that it takes; y: outputs
T = 16  # points of a side, a power of two
LOG_T = T.bit_length() - 1
HALF = T // 2
COLUMNS = HALF + 1  # of a spectrum
PITCH = T + 1  # elements from one row to the next in shared memory
PLANE = T * PITCH
THREADS = 256


@cuda.jit(device=True)
def transform(planes, re, im, t):
    """Transform T x T points in shared memory in place; `re` and `im` are the planes of real and imaginary parts."""
    for axis in range(2):
        along = PITCH if axis else 1
        across = 1 if axis else PITCH
        for n in range(t, T * T, THREADS):
            line, k = n // T, n % T
            other = cuda.brev(np.uint32(k)) >> np.uint32(32 - LOG_T)
            if k < other:
                a, b = line * across + k * along, line * across + other * along
                planes[re, a], planes[re, b] = planes[re, b], planes[re, a]
                planes[im, a], planes[im, b] = planes[im, b], planes[im, a]
        cuda.syncthreads()
        for stage in range(LOG_T):
            half = 1 << stage
            for n in range(t, T * HALF, THREADS):
                line, m = n // HALF, n % HALF
                k = m // half * 2 * half + m % half
                a, b = line * across + k * along, line * across + (k + half) * along
                root = m % half * (MAX_POINTS // (2 * half))
                b_re = planes[re, b] * ROOTS_RE[root] - planes[im, b] * ROOTS_IM[root]
                b_im = planes[re, b] * ROOTS_IM[root] + planes[im, b] * ROOTS_RE[root]
                planes[re, b], planes[im, b] = planes[re, a] - b_re, planes[im, a] - b_im
                planes[re, a], planes[im, a] = planes[re, a] + b_re, planes[im, a] + b_im
            cuda.syncthreads()


@cuda.jit
def whole(X, spectra, top, left, sign):
    """Write the spectrum of each X[n, c], padded with zeros, to [u, v, c, n]; `sign` is -1 for conjugates."""
    planes = ptx.shared_array(0, (2, PLANE), np.float32)
    t = cuda.threadIdx.x
    n, c = cuda.blockIdx.x, cuda.blockIdx.y
    for point in range(t, T * T, THREADS):
        row, col = point // T, point % T
        h, w = row - top, col - left
        inside = h >= 0 and h < X.shape[2] and w >= 0 and w < X.shape[3]
        planes[0, row * PITCH + col] = X[n, c, h, w] if inside else np.float32(0)
        planes[1, row * PITCH + col] = 0
    cuda.syncthreads()
    transform(planes, 0, 1, t)
    for point in range(t, T * COLUMNS, THREADS):
        u, v = point // COLUMNS, point % COLUMNS
        spectra[u, v, c, n, 0] = planes[0, u * PITCH + v]
        spectra[u, v, c, n, 1] = sign * planes[1, u * PITCH + v]


@cuda.jit
def multiply(images, filters, outputs):
    """outputs[u, v, k, n] = the sum over c of filters[u, v, c, k] * images[u, v, c, n]."""
    n, k = cuda.grid(2)
    u, v = cuda.blockIdx.z // images.shape[1], cuda.blockIdx.z % images.shape[1]
    if n < outputs.shape[3] and k < outputs.shape[2]:
        re, im = np.float32(0), np.float32(0)
        for c in range(images.shape[2]):
            a_re, a_im = images[u, v, c, n, 0], images[u, v, c, n, 1]
            b_re, b_im = filters[u, v, c, k, 0], filters[u, v, c, k, 1]
            re += a_re * b_re - a_im * b_im
            im += a_re * b_im + a_im * b_re
        outputs[u, v, k, n, 0] = re
        outputs[u, v, k, n, 1] = im


@cuda.jit
def inverse(spectra, Y, first_row, first_col):
    """Write to each Y[n, k] the inverse of spectrum [u, v, k, n], from this row and column of the plane on."""
    planes = ptx.shared_array(0, (2, PLANE), np.float32)
    t = cuda.threadIdx.x
    n, k = cuda.blockIdx.x, cuda.blockIdx.y
    for point in range(t, T * COLUMNS, THREADS):
        u, v = point // COLUMNS, point % COLUMNS
        re, im = spectra[u, v, k, n, 0], spectra[u, v, k, n, 1]
        planes[0, u * PITCH + v], planes[1, u * PITCH + v] = re, im
        if v > 0 and v < HALF:  # columns 0 and T / 2 are their own mirrors
            mirrored = (T - u) % T * PITCH + T - v
            planes[0, mirrored], planes[1, mirrored] = re, -im
    cuda.syncthreads()
    transform(planes, 1, 0, t)  # the inverse, with parts exchanged
    for point in range(t, Y.shape[2] * Y.shape[3], THREADS):
        row, col = point // Y.shape[3], point % Y.shape[3]
        Y[n, k, row, col] = planes[0, (row + first_row) * PITCH + col + first_col] * np.float32(1 / (T * T))


@cache
def _specialise(kernel, side):
    """Return a kernel for planes of side x side."""
    return specialise(kernel, T=side)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    N, C, K, R, S = problem.N, problem.C, problem.K, problem.R, problem.S
    rows, cols = problem.H + problem.top + problem.bottom, problem.W + problem.left + problem.right
    side = max(2, 1 << (max(rows, cols) - 1).bit_length())
    if side > MAX_POINTS:
        raise TooLarge(
            f"an image with its padding has {rows} x {cols} pixels, and {MAX_POINTS} x {MAX_POINTS} fit here"
        )
    images, filters, outputs = (
        workspace.array(role, (side, side // 2 + 1, *shape, 2), np.float32)
        for role, shape in (("images", (C, N)), ("filters", (C, K)), ("outputs", (K, N)))
    )
    shared_bytes = 2 * 4 * side * (side + 1)
    sign = np.float32(1 if problem.flipped else -1)
    first = (R - 1, S - 1) if problem.flipped else (0, 0)
    forth, product, back = (_specialise(whole, side), multiply, _specialise(inverse, side))
    return [
        Launch(forth, (N, C), THREADS, (x, images, problem.top, problem.left, np.float32(1)), shared_bytes),
        Launch(forth, (K, C), THREADS, (w, filters, 0, 0, sign), shared_bytes),
        Launch(product, (-(-N // 32), -(-K // 4), side * (side // 2 + 1)), (32, 4), (images, filters, outputs)),
        Launch(back, (N, K), THREADS, (outputs, y, *first), shared_bytes),
    ]
