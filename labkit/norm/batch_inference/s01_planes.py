"""An image in NCHW is a row of values: a thread loads 16 bytes at a time, and computes their channel.

The values of one image and channel are a plane, and planes are contiguous. The index of a value in its image, divided
by the pixels of a plane, is its channel. If planes are not multiples of 16 bytes, a vector may contain two channels;
vectors still serve if images are multiples of 16 bytes, such as 512 planes of 7 x 7 pixels. The mean is subtracted
before the multiplication. One factor and one summand, computed once per channel, would save an operation, but lose
nearly all digits if the mean is many spreads from zero.

A thread has up to four such loads in flight, fewer for small images, so that all SMs have blocks.

Costs in passes over memory, each of which reads or writes all values once:

    2       planes: read, written
    2       passes in all

Limited by memory. In NHWC neighbouring values have different channels: `s02_pixels`.

Parts: `load`, `store` of `labkit.parts.vectors`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store

# tested sizes: N, C, H, W, relu, layout, eps, hard (means far from zero)
EXAMPLES = (1, 1, 1, 1), (3, 5, 4, 6), (2, 4, 7, 7, False, "NCHW", 0.1), (2, 7, 1, 2), (2, 3, 70, 73)
EXAMPLES += ((2, 3, 20, 10, True, "NCHW", 1e-5, True),)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)  # timed sizes
COMPARED = BENCHED[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 8, 8, 28, 28  # simulated for the roofline
SUPPORTED = {"layout": ("NCHW",)}  # the problem's fields that steps accept
THREADS = 256
WIDTH = 4  # neighbours per load
LOADS, MAX_LOADS = 4, 4  # loads in flight per thread
BLOCKS_PER_SM = 8
VALUE_LIMIT = 2**32


@cuda.jit
def planes(x, mean, variance, weight, bias, y, values, pixels, eps, relu):
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    channels, piece = np.uint32(weight.shape[0]), np.uint32(WIDTH * LOADS * THREADS)
    pieces = np.uint32((values + piece - 1) // piece)  # of an image
    image = np.uint32(cuda.blockIdx.x // pieces)
    start = np.uint32(cuda.blockIdx.x % pieces * piece + WIDTH * cuda.threadIdx.x)
    for k in range(LOADS):
        i = np.uint32(start + k * WIDTH * THREADS)
        if i < values:
            load(x, image, i, x_reg[k])
    for k in range(LOADS):
        i = np.uint32(start + k * WIDTH * THREADS)
        if i < values:
            c, pixel = np.uint32(i // pixels), np.uint32(i % pixels)
            centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
            for e in range(WIDTH):
                if pixel == pixels:
                    c, pixel = np.uint32(min(np.uint32(c + 1), np.uint32(channels - 1))), np.uint32(0)
                    centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
                value = (x_reg[k, e] - centre) * scale + shift
                x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
                pixel += np.uint32(1)
            store(y, image, i, x_reg[k])


def geometry(problem, width: int) -> tuple[int, int]:
    """Return loads per thread, the most for which all SMs have blocks, and blocks per image."""
    values, loads = problem.C * problem.H * problem.W, MAX_LOADS
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    while loads > 1 and problem.N * values < blocks * THREADS * width * loads:
        loads //= 2
    return loads, -(-values // (width * loads * THREADS))


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """Return the launch for y of images in NCHW."""
    problem.check(x, weight, bias, y, running_mean, running_variance, supported=SUPPORTED, dtype=format.dtype)
    values = prod(x.shape[1:])
    if values >= VALUE_LIMIT:
        raise TooLarge(f"an image has {values} values, and this step counts them below {VALUE_LIMIT}")
    x, y = reshape(x, problem.N, values), reshape(y, problem.N, values)
    width = vector_width(x, y)
    loads, blocks = geometry(problem, width)
    numbers = np.uint32(values), np.uint32(problem.H * problem.W), np.float32(problem.eps), problem.relu
    arguments = word_view(x, width), running_mean, running_variance, weight, bias, word_view(y, width), *numbers
    kernel = specialise_vectors(planes, format.dtype, width, bounds=THREADS, LOADS=loads)
    return [Launch(kernel, problem.N * blocks, THREADS, arguments)]
