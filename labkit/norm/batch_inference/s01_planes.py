"""An image in NCHW is a row of values, of which a thread takes four at a time, and finds out whose they are.

A channel's values of an image are a plane, and planes follow one another. The number of a value in its image, divided
by the pixels of a plane, is its channel. Four neighbours may belong to two channels where a plane's pixels are no
multiple of four; so they are taken at once all the same, if the values of an image are such a multiple, as those of 512
planes of 7 x 7 pixels. The mean is taken away before anything is multiplied: a factor and a summand, made once for each
channel, would cost one operation less, and where the mean is many spreads from zero nearly all digits.

Costs, in passes over memory, each of them all values read or written once:

    2       planes: read, written
    2       passes in all

Limited by memory. In NHWC a value's channel changes from neighbour to neighbour: `s02_pixels`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.access import suited
from labkit.ptx import load4, store4

EXAMPLES = (
    (1, 1, 1, 1),
    (3, 5, 4, 6),
    (2, 4, 7, 7, False),
    (2, 7, 1, 2),
    (2, 3, 70, 73),
    (2, 3, 20, 10, True, "NCHW", 1e-5, True),
)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)
COMPARED = BENCHED[0]
STANDING = 8, 8, 28, 28
TAKES = {"layout": ("NCHW",)}
THREADS = 256
LOADS = 4  # of four values, that a thread has under way
PIECE = 4 * LOADS * THREADS  # values of a block
MOST = 2**32


@cuda.jit
def planes(x, mean, variance, weight, bias, y, pixels, eps, relu):
    own = cuda.local.array((LOADS, 4), np.float32)
    values, channels = np.uint32(x.shape[1]), np.uint32(weight.shape[0])
    pieces = np.uint32((values + PIECE - 1) // PIECE)  # of an image
    image = np.uint32(cuda.blockIdx.x // pieces)
    start = np.uint32(cuda.blockIdx.x % pieces * PIECE + 4 * cuda.threadIdx.x)
    for load in range(LOADS):
        i = np.uint32(start + load * 4 * THREADS)
        if i < values:
            own[load, 0], own[load, 1], own[load, 2], own[load, 3] = load4(x, (image, i))
    for load in range(LOADS):
        i = np.uint32(start + load * 4 * THREADS)
        if i < values:
            c, pixel = np.uint32(i // pixels), np.uint32(i % pixels)
            centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
            for e in range(4):
                if pixel == pixels:
                    c, pixel = np.uint32(min(np.uint32(c + 1), np.uint32(channels - 1))), np.uint32(0)
                    centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
                value = (own[load, e] - centre) * scale + shift
                own[load, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
                pixel += np.uint32(1)
            store4(y, (image, i), own[load, 0], own[load, 1], own[load, 2], own[load, 3])


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """y, of images in NCHW."""
    problem.check(x, weight, bias, y, running_mean, running_variance, takes=TAKES, dtype=format.dtype)
    values = prod(x.shape[1:])
    if values >= MOST:
        raise TooLarge(f"an image has {values} values, and this step counts them below {MOST}")
    x, y = reshaped(x, problem.N, values), reshaped(y, problem.N, values)
    numbers = np.uint32(problem.H * problem.W), np.float32(problem.eps), problem.relu
    arguments = x, running_mean, running_variance, weight, bias, y, *numbers
    return [Launch(suited(planes, x, y), problem.N * -(-values // PIECE), THREADS, arguments)]
