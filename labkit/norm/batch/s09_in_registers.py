"""A small channel stays in the registers of one block: it is read once, and no block waits for others.

A channel of 32 images of 7 x 7 pixels has 1568 values, four for each of 416 threads. With all of them at hand there is
nothing to merge: the block finds the mean, and then the squares about it. Rounding has moved that mean a little; the
sum of what is left over says how far, and takes it out of both. (Chan, Golub and LeVeque, Algorithms for Computing the
Sample Variance, 1983, "corrected two-pass".)

Costs, in passes over memory, each of them all values read or written once:

    2       in_registers: read, written
    2       passes in all

Limited by how long memory takes to answer, once to read and once to write, and by two sums of a block.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshape
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_fours

FORMATS = FP32, BF16
BENCHED = ((32, 512, 7, 7),)
COMPARED = 32, 512, 7, 7
LARGEST = (630, 1, 7, 7), (512, 1, 8, 8)
WIDTH = 4  # neighbours that a thread takes at once
SHARE, MOST_SHARE = 1, 8  # times that it does
VECTORS = 13  # of four neighbours, in a plane
WARP, MOST_WARPS = 32, 32
AT_ONCE = True  # all blocks run, or another step is chosen: a second one in their place would wait for memory again
THREADS_OF_SM = 1024  # with 64 registers each


@cuda.jit(launch_bounds=WARP * MOST_WARPS)
def in_registers(x, weight, bias, y, mean, variance, running_mean, running_variance, images, eps, factor, relu):
    own = cuda.local.array((SHARE, WIDTH), np.float32)
    of_warps = cuda.shared.array((3, MOST_WARPS), np.float32)
    sums = cuda.local.array(2, np.float32)
    t, threads, c = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.blockIdx.x)
    pixels, channels = np.uint32(x.shape[1]), np.uint32(cuda.gridDim.x)
    values = np.float32(images * pixels)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, image * channels + c, i)
    factor_of_y, shift, mean_before, variance_before = weight[c], bias[c], running_mean[c], running_variance[c]

    sums[0] = np.float32(0)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        for e in range(WIDTH):
            if image < images and i + e < pixels:
                sums[0] += own[k, e]
    block_all_sums(sums, of_warps[:1], 1)
    near = sums[0] / values

    sums[0] = sums[1] = np.float32(0)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        for e in range(WIDTH):
            if image < images and i + e < pixels:
                value = own[k, e] - near
                sums[0] += value
                sums[1] += value * value
    block_all_sums(sums, of_warps[1:], 2)
    total, squares = sums[0], sums[1]
    centre = near + total / values
    squares -= total * (total / values)
    scale = factor_of_y / sqrt(squares / values + eps)
    if t == 0:
        mean[c] = centre
        variance[c] = squares / values
        keep = np.float32(1) - factor
        running_mean[c] = keep * mean_before + factor * centre
        running_variance[c] = keep * variance_before + factor * squares / (values - np.float32(1))

    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            for e in range(WIDTH):
                value = (own[k, e] - centre) * scale + shift
                own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
            store_row_four(y, image * channels + c, i, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Vectors of a plane, how many a thread takes, and threads of a block.

    Raises
    ------
    TooLarge
        A channel has more vectors than a block keeps.
    """
    vectors = -(-problem.H * problem.W // WIDTH)
    all_vectors = problem.N * vectors
    if all_vectors > WARP * MOST_WARPS * MOST_SHARE:
        raise TooLarge(f"a channel has {all_vectors} vectors, and a block keeps {WARP * MOST_WARPS * MOST_SHARE}")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    at_once = max(WARP, THREADS_OF_SM // -(-problem.C // sms))  # threads, so that no block waits for another to end
    share = min(MOST_SHARE, -(-all_vectors // at_once))
    return vectors, share, WARP * -(-all_vectors // (share * WARP))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, y = reshape(x, *planes_of(x.shape)), reshape(y, *planes_of(y.shape))
    vectors, share, threads = geometry(problem)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    return [Launch(specialise_fours(_sized(in_registers, vectors, share), x, y), problem.C, threads, arguments)]


@lru_cache(128)  # a kernel for each size of planes
def _sized(kernel, vectors: int, share: int):
    """The kernel's copy for planes of so many vectors, so many of them a thread."""
    return specialise(kernel, VECTORS=vectors, SHARE=share)
