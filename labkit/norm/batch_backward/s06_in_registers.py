"""A small channel stays in the registers of one block: dy and x are read once, and no block waits for others.

A channel of 32 images of 7 x 7 pixels has 1568 values, four for each of 416 threads. With all of them at hand, masked,
and as far from the mean as they are, the block finds both sums, and each thread writes what follows from them.

Costs, in passes over memory, each of them all values read or written once:

    3       in_registers: dy and x read, dx written
    3       passes in all

Limited by how long memory takes to answer, once to read and once to write, and by the sums of a block. Larger channels
do not fit. `s07_one_read` keeps them in the shared memory of several blocks.
"""

from functools import cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshaped
from labkit.blas.sums import block_total
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.access import suited
from labkit.norm.batch_backward import TAKES
from labkit.norm.problem import planes_of
from labkit.ptx import load4, store4

FORMATS = FP32, BF16
BENCHED = ((32, 512, 7, 7),)
COMPARED = 32, 512, 7, 7
WIDTH = 4  # neighbours that a thread takes at once
SHARE, MOST_SHARE = 1, 4  # times that it does, of each array
VECTORS = 13  # of four neighbours, in a plane
WARP, MOST_WARPS = 32, 32


@cuda.jit
def in_registers(dy, x, weight, bias, mean, variance, dx, dweight, dbias, images, eps, relu):
    gradient = cuda.local.array((SHARE, WIDTH), np.float32)
    own = cuda.local.array((SHARE, WIDTH), np.float32)
    of_warps = cuda.shared.array((2, MOST_WARPS), np.float32)
    t, threads, c = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.blockIdx.x)
    pixels, channels = np.uint32(x.shape[1]), np.uint32(cuda.gridDim.x)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load4(dy, (image * channels + c, i))
            own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load4(x, (image * channels + c, i))

    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    total = products = np.float32(0)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        for e in range(WIDTH):
            if image < images and i + e < pixels:
                own[k, e] -= centre
                if relu and own[k, e] * scale + shift <= np.float32(0):  # a NaN is not below zero
                    gradient[k, e] = np.float32(0)
                total += gradient[k, e]
                products += gradient[k, e] * own[k, e]
    total, products = block_total(total, of_warps, 0), block_total(products, of_warps, 1)
    if t == 0:
        dbias[c] = total
        dweight[c] = products / root

    values = np.float32(images * pixels)
    level, slope = total / values, products / values / (root * root)
    for k in range(SHARE):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            for e in range(WIDTH):
                own[k, e] = scale * (gradient[k, e] - level - own[k, e] * slope)
            store4(dx, (image * channels + c, i), own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Vectors of a plane, how many a thread takes, and threads of a block.

    Raises
    ------
    TooLarge
        A channel has more vectors than a block keeps.
    """
    vectors = -(-problem.H * problem.W // WIDTH)
    share = -(-problem.N * vectors // (WARP * MOST_WARPS))
    if share > MOST_SHARE:
        raise TooLarge(
            f"a channel has {problem.N * vectors} vectors, and a block keeps {WARP * MOST_WARPS * MOST_SHARE}"
        )
    return vectors, share, WARP * -(-problem.N * vectors // (share * WARP))


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """dx, dweight and dbias, of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshaped(X, *planes_of(X.shape)) for X in (dy, x, dx))
    vectors, share, threads = geometry(problem)
    numbers = np.uint32(problem.N), np.float32(problem.eps), problem.relu
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, *numbers
    return [Launch(suited(_sized(in_registers, vectors, share), dy, x, dx), problem.C, threads, arguments)]


@cache
def _sized(kernel, vectors: int, share: int):
    """The kernel's copy for planes of so many vectors, so many of them a thread."""
    return specialise(kernel, VECTORS=vectors, SHARE=share)
