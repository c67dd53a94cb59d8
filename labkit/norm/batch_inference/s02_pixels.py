"""In NHWC a thread keeps what it needs of four neighbouring channels, and goes down the pixels of all images.

Images are a matrix: a row for each pixel, a column for each channel. Threads of a warp take neighbours in a row, so
that all that is loaded is used, and what a thread knows of its four channels serves all its pixels.

Costs, in passes over memory, each of them all values read or written once:

    2       pixels: read, written
    2       passes in all

Limited by memory.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.access import suited
from labkit.ptx import load4, store4

EXAMPLES = (
    (1, 1, 1, 1, True, "NHWC"),
    (3, 5, 4, 6, True, "NHWC"),
    (2, 36, 7, 7, False, "NHWC"),
    (35, 140, 3, 14, True, "NHWC"),
    (6, 3, 20, 10, True, "NHWC", 1e-5, True),
)
BENCHED = tuple((*sizes, True, "NHWC") for sizes in ((64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)))
COMPARED = BENCHED[0]
STANDING = 8, 64, 14, 14, True, "NHWC"
TAKES = {"layout": ("NHWC",)}
THREADS = 256
WIDTH = 4  # channels of a thread
MOST_ACROSS = 32  # threads that stand side by side in a row
LOADS = 4  # of four values, that a thread has under way


@cuda.jit
def pixels(x, mean, variance, weight, bias, y, across, eps, relu):
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    rows, channels, t = np.uint32(x.shape[0]), np.uint32(x.shape[1]), np.uint32(cuda.threadIdx.x)
    down = np.uint32(THREADS // across)  # rows of a block's threads
    c = np.uint32(WIDTH * (cuda.blockIdx.y * across + t % across))
    start = np.uint32(cuda.blockIdx.x * LOADS * down + t // across)
    if c < channels:
        for load in range(LOADS):
            row = np.uint32(start + load * down)
            if row < rows:
                own[load, 0], own[load, 1], own[load, 2], own[load, 3] = load4(x, (row, c))
        for e in range(WIDTH):
            channel = np.uint32(min(np.uint32(c + e), np.uint32(channels - 1)))
            centre, shift = mean[channel], bias[channel]
            scale = weight[channel] / sqrt(variance[channel] + eps)
            for load in range(LOADS):
                if np.uint32(start + load * down) < rows:
                    value = (own[load, e] - centre) * scale + shift
                    own[load, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        for load in range(LOADS):
            row = np.uint32(start + load * down)
            if row < rows:
                store4(y, (row, c), own[load, 0], own[load, 1], own[load, 2], own[load, 3])


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """y, of images in NHWC."""
    problem.check(x, weight, bias, y, running_mean, running_variance, takes=TAKES, dtype=format.dtype)
    x, y = reshaped(x, prod(x.shape[:3]), x.shape[3]), reshaped(y, prod(y.shape[:3]), y.shape[3])
    vectors = -(-problem.C // WIDTH)
    across = min(MOST_ACROSS, 1 << (vectors - 1).bit_length())  # a power of two
    grid = -(-problem.values // (LOADS * THREADS // across)), -(-vectors // across)
    numbers = np.uint32(across), np.float32(problem.eps), problem.relu
    return [Launch(suited(pixels, x, y), grid, THREADS, (x, running_mean, running_variance, weight, bias, y, *numbers))]
