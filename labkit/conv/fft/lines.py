"""Fourier transforms of T points by T / 8 threads, in registers and shared memory.

With n = j + F n' and k = k' + 8 k'' the transform has two passes (Cooley and Tukey, 1965; F is T / 8):

    X[k' + 8 k''] = sum over j of  w_F^(j k'')  w_T^(j k')  sum over n' of  w_8^(n' k') x[j + F n']

Thread j of a line has the eight points j + F n', transforms them, and multiplies each by w_T^(j k'). It exchanges
points with the other threads of its line through shared memory. Then it transforms F points of each k' that is j
modulo F. It ends with the points k = j + F m + 8 k'', in the order of m and k''. The inverse is the same with real and
imaginary parts exchanged, before and after, times 1 / T.

A line in shared memory has a gap after each eight points: point k is at `slot(k)`. If threads are numbered along a line
first, both passes are free of bank conflicts.
"""

import numpy as np

from labkit import cuda

T = 16  # points of a line: 16, 32 or 64
F = T // 8  # threads of a line
MAX_POINTS = 128  # of the longest line; ROOTS are its roots of unity
ROOTS = np.exp(-2j * np.pi * np.arange(MAX_POINTS) / MAX_POINTS)
ROOTS_RE, ROOTS_IM = ROOTS.real.astype(np.float32), ROOTS.imag.astype(np.float32)


def pitch(points: int) -> int:
    """Return the elements from one line to the next in shared memory, which avoid bank conflicts in a warp."""
    return {16: 20, 32: 36, 64: 72}[points]


PITCH = pitch(T)
HALF_ROOT = np.float32(np.sqrt(0.5))


@cuda.jit(device=True)
def slot(k):
    """Return the index of point k in a line in shared memory: a gap after each eight points."""
    return k + k // 8


@cuda.jit(device=True)
def fft2(re, im, a, b):
    """Transform two points in place."""
    re[a], re[b] = re[a] + re[b], re[a] - re[b]
    im[a], im[b] = im[a] + im[b], im[a] - im[b]


@cuda.jit(device=True)
def fft4(re, im, first):
    """Transform four points from `first` on, in place."""
    a, b, c, d = first, first + 1, first + 2, first + 3
    fft2(re, im, a, c)
    fft2(re, im, b, d)
    re[d], im[d] = im[d], -re[d]  # by w_4 = -i
    fft2(re, im, a, b)
    fft2(re, im, c, d)
    re[b], re[c] = re[c], re[b]
    im[b], im[c] = im[c], im[b]


@cuda.jit(device=True)
def fft8(re, im):
    """Transform eight points in place."""
    for i in range(4):
        fft2(re, im, i, i + 4)
    re[5], im[5] = (re[5] + im[5]) * HALF_ROOT, (im[5] - re[5]) * HALF_ROOT  # by w_8
    re[6], im[6] = im[6], -re[6]
    re[7], im[7] = (im[7] - re[7]) * HALF_ROOT, -(re[7] + im[7]) * HALF_ROOT
    fft4(re, im, 0)  # the even points of the result
    fft4(re, im, 4)  # the odd ones
    re[1], re[2], re[3], re[4], re[5], re[6] = re[4], re[1], re[5], re[2], re[6], re[3]
    im[1], im[2], im[3], im[4], im[5], im[6] = im[4], im[1], im[5], im[2], im[6], im[3]


@cuda.jit(device=True)
def load_roots(root_re, root_im, j):
    """Load the factors w_T^(j k) between the two passes of thread j."""
    for k in range(8):
        root_re[k], root_im[k] = ROOTS_RE[j * k * (MAX_POINTS // T)], ROOTS_IM[j * k * (MAX_POINTS // T)]


@cuda.jit(device=True)
def transform(re, im, root_re, root_im, lines, re_row, im_row, begin, j):
    """Transform a line: thread j has its points in `re` and `im`, before and after.

    It overwrites elements from `begin` on in two rows of `lines`, in shared memory. All lanes of a warp must call it.
    """
    fft8(re, im)
    for k in range(8):
        if k > 0:
            re[k], im[k] = re[k] * root_re[k] - im[k] * root_im[k], re[k] * root_im[k] + im[k] * root_re[k]
        lines[re_row, begin + k + 9 * j] = re[k]
        lines[im_row, begin + k + 9 * j] = im[k]
    cuda.syncwarp()
    for m in range(8 // F):
        for n in range(F):
            re[m * F + n] = lines[re_row, begin + j + F * m + 9 * n]
            im[m * F + n] = lines[im_row, begin + j + F * m + 9 * n]
    cuda.syncwarp()
    for first in range(0, 8, F):
        if F == 2:
            fft2(re, im, first, first + 1)
        elif F == 4:
            fft4(re, im, first)
        else:
            fft8(re, im)


@cuda.jit(device=True)
def load_points(re, im, lines, re_row, im_row, begin, j):
    """Load thread j's points of a line for `transform`; afterwards the line may be overwritten."""
    for i in range(8):
        re[i] = lines[re_row, begin + slot(j + F * i)]
        im[i] = lines[im_row, begin + slot(j + F * i)]
    cuda.syncwarp()


@cuda.jit(device=True)
def store_points(re, im, lines, re_row, im_row, begin, j):
    """Store thread j's points of a line from `transform`."""
    for m in range(8 // F):
        for n in range(F):
            lines[re_row, begin + j + F * m + 9 * n] = re[m * F + n]
            lines[im_row, begin + j + F * m + 9 * n] = im[m * F + n]
