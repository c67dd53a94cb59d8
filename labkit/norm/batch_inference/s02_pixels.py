"""In NHWC a thread keeps what it needs of the channels that 16 bytes hold, and goes down the pixels of all images.

Images are a matrix: a row for each pixel, a column for each channel. Threads of a warp take neighbours in a row, so
that all that is loaded is used, and what a thread knows of its channels serves all its pixels.

Costs, in passes over memory, each of them all values read or written once:

    2       pixels: read, written
    2       passes in all

Limited by memory.

Parts: `load`, `store` of `labkit.parts.vectors`.
"""

from math import prod, sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store

EXAMPLES = (
    (1, 1, 1, 1, True, "NHWC"),
    (3, 5, 4, 6, True, "NHWC"),
    (2, 36, 7, 7, False, "NHWC", 0.1),
    (35, 140, 3, 14, True, "NHWC"),
    (6, 3, 20, 10, True, "NHWC", 1e-5, True),
)
BENCHED = tuple((*sizes, True, "NHWC") for sizes in ((64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)))
COMPARED = BENCHED[0]
ROOFLINE_POINT = 8, 64, 14, 14, True, "NHWC"
TAKES = {"layout": ("NHWC",)}
THREADS = 256
WIDTH = 4  # channels of a thread
MOST_ACROSS = 32  # threads that stand side by side in a row
LOADS, MOST_LOADS = 4, 4  # that a thread has under way
RESIDENT = 8  # blocks of an SM


@cuda.jit
def pixels(x, mean, variance, weight, bias, y, across, eps, relu):
    own = cuda.local.array((LOADS, WIDTH), np.float32)
    rows, channels, t = np.uint32(x.shape[0]), np.uint32(weight.shape[0]), np.uint32(cuda.threadIdx.x)
    down = np.uint32(THREADS // across)  # rows of a block's threads
    c = np.uint32(WIDTH * (cuda.blockIdx.y * across + t % across))
    start = np.uint32(cuda.blockIdx.x * LOADS * down + t // across)
    if c < channels:
        for k in range(LOADS):
            row = np.uint32(start + k * down)
            if row < rows:
                load(x, row, c, own[k])
        for e in range(WIDTH):
            channel = np.uint32(c + e)
            centre, shift = mean[channel], bias[channel]
            scale = weight[channel] / sqrt(variance[channel] + eps)
            for k in range(LOADS):
                if np.uint32(start + k * down) < rows:
                    value = (own[k, e] - centre) * scale + shift
                    own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        for k in range(LOADS):
            row = np.uint32(start + k * down)
            if row < rows:
                store(y, row, c, own[k])


def geometry(problem, width: int) -> tuple[int, int, tuple[int, int]]:
    """Threads side by side, a power of two; loads of each, as many as leave blocks for all SMs; and the grid."""
    vectors, loads = -(-problem.C // width), MOST_LOADS
    across = min(MOST_ACROSS, 1 << (vectors - 1).bit_length())
    wide = -(-vectors // across)
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    while loads > 1 and problem.values * wide * across < blocks * THREADS * loads:
        loads //= 2
    return across, loads, (-(-problem.values // (loads * THREADS // across)), wide)


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """y, of images in NHWC."""
    problem.check(x, weight, bias, y, running_mean, running_variance, takes=TAKES, dtype=format.dtype)
    x, y = reshape(x, prod(x.shape[:3]), x.shape[3]), reshape(y, prod(y.shape[:3]), y.shape[3])
    at_once = vector_width(x, y)
    across, loads, grid = geometry(problem, at_once)
    numbers = np.uint32(across), np.float32(problem.eps), problem.relu
    arguments = kernel_view(x, at_once), running_mean, running_variance, weight, bias, kernel_view(y, at_once), *numbers
    return [Launch(specialise_vectors(pixels, format.dtype, at_once, THREADS, LOADS=loads), grid, THREADS, arguments)]
