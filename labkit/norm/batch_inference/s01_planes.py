"""An image in NCHW is a row of values, of which a thread takes 16 bytes at a time, and finds out whose they are.

A channel's values of an image are a plane, and planes follow one another. The number of a value in its image, divided
by the pixels of a plane, is its channel. Neighbours may belong to two channels where a plane is no multiple of 16
bytes; they are taken at once all the same, if an image is such a multiple, as 512 planes of 7 x 7 pixels are. The mean
is taken away before anything is multiplied: a factor and a summand, made once for each channel, would cost one
operation less, and where the mean is many spreads from zero nearly all digits.

A thread has up to four such loads under way, and fewer of small images, so that all SMs have blocks.

Costs, in passes over memory, each of them all values read or written once:

    2       planes: read, written
    2       passes in all

Limited by memory. In NHWC a value's channel changes from neighbour to neighbour: `s02_pixels`.

Parts: `load`, `store` of `labkit.parts.vectors`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store

EXAMPLES = (
    (1, 1, 1, 1),
    (3, 5, 4, 6),
    (2, 4, 7, 7, False, "NCHW", 0.1),
    (2, 7, 1, 2),
    (2, 3, 70, 73),
    (2, 3, 20, 10, True, "NCHW", 1e-5, True),
)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)
COMPARED = BENCHED[0]
ROOFLINE_POINT = 8, 8, 28, 28
TAKES = {"layout": ("NCHW",)}
THREADS = 256
WIDTH = 4  # neighbours of a load
LOADS, MOST_LOADS = 4, 4  # that a thread has under way
RESIDENT = 8  # blocks of an SM
MOST = 2**32


@cuda.jit
def planes(x, mean, variance, weight, bias, y, values, pixels, eps, relu):
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    channels, piece = np.uint32(weight.shape[0]), np.uint32(WIDTH * LOADS * THREADS)
    pieces = np.uint32((values + piece - 1) // piece)  # of an image
    image = np.uint32(cuda.blockIdx.x // pieces)
    start = np.uint32(cuda.blockIdx.x % pieces * piece + WIDTH * cuda.threadIdx.x)
    for k in range(LOADS):
        i = np.uint32(start + k * WIDTH * THREADS)
        if i < values:
            load(x, image, i, own[k])
    for k in range(LOADS):
        i = np.uint32(start + k * WIDTH * THREADS)
        if i < values:
            c, pixel = np.uint32(i // pixels), np.uint32(i % pixels)
            centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
            for e in range(WIDTH):
                if pixel == pixels:
                    c, pixel = np.uint32(min(np.uint32(c + 1), np.uint32(channels - 1))), np.uint32(0)
                    centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
                value = (own[k, e] - centre) * scale + shift
                own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
                pixel += np.uint32(1)
            store(y, image, i, own[k])


def geometry(problem, width: int) -> tuple[int, int]:
    """Loads of a thread, as many as leave blocks for all SMs, and blocks of an image."""
    values, loads = problem.C * problem.H * problem.W, MOST_LOADS
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    while loads > 1 and problem.N * values < blocks * THREADS * width * loads:
        loads //= 2
    return loads, -(-values // (width * loads * THREADS))


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """y, of images in NCHW."""
    problem.check(x, weight, bias, y, running_mean, running_variance, takes=TAKES, dtype=format.dtype)
    values = prod(x.shape[1:])
    if values >= MOST:
        raise TooLarge(f"an image has {values} values, and this step counts them below {MOST}")
    x, y = reshape(x, problem.N, values), reshape(y, problem.N, values)
    at_once = vector_width(x, y)
    loads, blocks = geometry(problem, at_once)
    numbers = np.uint32(values), np.uint32(problem.H * problem.W), np.float32(problem.eps), problem.relu
    arguments = kernel_view(x, at_once), running_mean, running_variance, weight, bias, kernel_view(y, at_once), *numbers
    kernel = specialise_vectors(planes, format.dtype, at_once, THREADS, LOADS=loads)
    return [Launch(kernel, problem.N * blocks, THREADS, arguments)]
