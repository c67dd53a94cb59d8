"""A small channel stays in the registers of one block: dy and x are read once, and no block waits for others.

A channel of 32 images of 7 x 7 pixels has 1568 values, four for each of 416 threads, which take neighbours. With all of
them at hand, masked, and as far from the mean as they are, the block finds both sums, behind one barrier, and each
thread writes what follows from them.

Costs, in passes over memory, each of them all values read or written once:

    3       in_registers: dy and x read, dx written
    3       passes in all

Limited by how long memory takes to answer, once to read and once to write, and by the sums of a block. Larger channels
do not fit. `s07_one_read` keeps them in the shared memory of several blocks.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshape
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch_backward import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.sums import block_all_sum2
from labkit.parts.vectors import load, store

FORMATS = FP32, BF16
BENCHED = ((32, 512, 7, 7),)
COMPARED = 32, 512, 7, 7
LARGEST = (167, 1, 7, 7), (8192, 1, 1, 1), (128, 1, 8, 8)
SHARE, MOST_SHARE = 4, 16  # values of a thread, of each array
MOST_THREADS = 512  # of a block, but where its threads take less than `geometry` would give them
PIXELS = 49  # of a plane
WARP, MOST_WARPS = 32, 18
AT_ONCE = True  # all blocks run, or another step is chosen: a second one in their place would wait for memory again


@cuda.jit
def in_registers(dy, x, weight, bias, mean, variance, dx, dweight, dbias, images, eps, relu):
    gradient = cuda.local.array(SHARE, np.float32)
    own = cuda.local.array(SHARE, np.float32)
    one = cuda.local.array(1, np.float32)
    of_warps = cuda.shared.array((2, MOST_WARPS), np.float32)
    t, threads, c = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.blockIdx.x)
    channels = np.uint32(cuda.gridDim.x)
    for k in range(SHARE):
        image, i = (t + k * threads) // PIXELS, (t + k * threads) % PIXELS
        gradient[k] = own[k] = np.float32(0)
        if image < images:
            load(dy, image * channels + c, i, one)
            gradient[k] = one[0]
            load(x, image * channels + c, i, one)
            own[k] = one[0]

    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    total = products = np.float32(0)
    for k in range(SHARE):
        if (t + k * threads) // PIXELS < images:
            own[k] -= centre
            if relu and own[k] * scale + shift <= np.float32(0):  # a NaN is not below zero
                gradient[k] = np.float32(0)
            total += gradient[k]
            products += gradient[k] * own[k]
    total, products = block_all_sum2(total, products, of_warps)
    if t == 0:
        dbias[c] = total
        dweight[c] = products / root

    values = np.float32(images * PIXELS)
    level, slope = total / values, products / values / (root * root)
    for k in range(SHARE):
        image, i = (t + k * threads) // PIXELS, (t + k * threads) % PIXELS
        if image < images:
            one[0] = scale * (gradient[k] - level - own[k] * slope)
            store(dx, image * channels + c, i, one)


def geometry(problem, most_share: int = MOST_SHARE) -> tuple[int, int]:
    """How many values a thread takes, of at most so many, and threads of a block.

    Raises
    ------
    TooLarge
        A channel has more values than a block keeps.
    """
    share = -(-problem.values // MOST_THREADS)
    if share > MOST_SHARE:
        raise TooLarge(f"a channel has {problem.values} values, and a block keeps {MOST_THREADS * MOST_SHARE}")
    share = min(share, most_share)
    return share, WARP * -(-problem.values // (share * WARP))


def fitting_share(pixels: int, format) -> int:
    """The most values that a thread keeps in the registers that it has.

    With 16 float32 values the compiler keeps the index of each too, unless planes are a power of two: that takes 144
    registers, and a thread of a block of 512 has 128. Larger blocks then take 15 values a thread.
    """
    return MOST_SHARE - 1 if format is FP32 and pixels & (pixels - 1) else MOST_SHARE


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """dx, dweight and dbias, of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshape(X, *planes_of(X.shape)) for X in (dy, x, dx))
    share, threads = geometry(problem, fitting_share(problem.H * problem.W, format))
    numbers = np.uint32(problem.N), np.float32(problem.eps), problem.relu
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, *numbers
    kernel = specialise_for(in_registers, format.dtype, problem.H * problem.W, share)
    return [Launch(kernel, problem.C, threads, arguments)]


@lru_cache(128)  # a kernel for each size of planes
def specialise_for(kernel, dtype, pixels: int, share: int):
    """The kernel's copy for images of a type, planes of so many pixels, and so many values of a thread."""
    return specialise(kernel, PIXELS=pixels, SHARE=share, WIDTH=1, ELEMENT=dtype.type)
