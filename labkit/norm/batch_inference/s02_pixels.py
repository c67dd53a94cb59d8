"""In NHWC a thread holds the parameters of one vector's channels, and processes the pixels of all images.

Images are a matrix: a row per pixel, a column per channel. The threads of a warp read neighbours of a row, so that
accesses are coalesced, and the parameters of a thread's channels serve all its pixels.

Costs in passes over memory, each of which reads or writes all values once:

    2       pixels: read, written
    2       passes in all

Limited by memory.

Parts: `load`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.images import as_pixels
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import load, store

# tested sizes: N, C, H, W, relu, layout, eps, hard (means far from zero)
EXAMPLES = (1, 1, 1, 1, True, "NHWC"), (3, 5, 4, 6, True, "NHWC"), (2, 36, 7, 7, False, "NHWC", 0.1)
EXAMPLES += (35, 140, 3, 14, True, "NHWC"), (6, 3, 20, 10, True, "NHWC", 1e-5, True)
BENCHED = tuple((*sizes, True, "NHWC") for sizes in ((64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)))  # timed
COMPARED = BENCHED[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 8, 64, 14, 14, True, "NHWC"  # simulated for the roofline
SUPPORTED = {"layout": ("NHWC",)}  # the problem's fields that steps accept
THREADS = 256
WIDTH = 4  # channels per thread
MAX_ROW_THREADS = 32  # threads per row
LOADS, MAX_LOADS = 4, 4  # loads in flight per thread
BLOCKS_PER_SM = 8


@cuda.jit
def pixels(x, mean, variance, weight, bias, y, row_threads, eps, relu):
    x_reg = cuda.local.array((LOADS, WIDTH), np.float32)
    rows, channels, t = np.uint32(x.shape[0]), np.uint32(weight.shape[0]), np.uint32(cuda.threadIdx.x)
    block_rows = np.uint32(THREADS // row_threads)  # rows of the block's threads
    c = np.uint32(WIDTH * (cuda.blockIdx.y * row_threads + t % row_threads))
    start = np.uint32(cuda.blockIdx.x * LOADS * block_rows + t // row_threads)
    if c < channels:
        for k in range(LOADS):
            row = np.uint32(start + k * block_rows)
            if row < rows:
                load(x, row, c, x_reg[k])
        for e in range(WIDTH):
            channel = np.uint32(c + e)
            centre, shift = mean[channel], bias[channel]
            scale = weight[channel] / sqrt(variance[channel] + eps)
            for k in range(LOADS):
                if np.uint32(start + k * block_rows) < rows:
                    value = (x_reg[k, e] - centre) * scale + shift
                    x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        for k in range(LOADS):
            row = np.uint32(start + k * block_rows)
            if row < rows:
                store(y, row, c, x_reg[k])


def geometry(problem, width: int) -> tuple[int, int, tuple[int, int]]:
    """Return threads per row, a power of two; loads per thread, the most for which all SMs have blocks; the grid."""
    vectors, loads = -(-problem.C // width), MAX_LOADS
    row_threads = min(MAX_ROW_THREADS, 1 << (vectors - 1).bit_length())
    row_blocks = -(-vectors // row_threads)
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    while loads > 1 and problem.values * row_blocks * row_threads < blocks * THREADS * loads:
        loads //= 2
    return row_threads, loads, (-(-problem.values // (loads * THREADS // row_threads)), row_blocks)


def launches(x, weight, bias, y, running_mean, running_variance, problem, format=FP32):
    """Return the launch for y of images in NHWC."""
    problem.check(x, weight, bias, y, running_mean, running_variance, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_pixels(x, y)
    width = vector_width(x, y)
    row_threads, loads, grid = geometry(problem, width)
    numbers = np.uint32(row_threads), np.float32(problem.eps), problem.relu
    arguments = word_view(x, width), running_mean, running_variance, weight, bias, word_view(y, width), *numbers
    kernel = specialise_vectors(pixels, format.dtype, width, bounds=THREADS, LOADS=loads)
    return [Launch(kernel, grid, THREADS, arguments)]
