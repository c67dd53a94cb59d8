"""One block keeps a small channel in registers: it is read once, and blocks do not wait for each other.

A channel of 32 images of 7 x 7 pixels has 1568 values, four for each of 416 threads. With all values in registers
nothing is merged: the block computes a rough mean, and then the squares around it. The sum of the deviations is the
rounding error of that mean, and corrects both. (Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance,
1983, "corrected two-pass".)

Costs in passes over memory, each of which reads or writes all values once:

    2       in_registers: read, written
    2       passes in all

Limited by memory latency, once for the load and once for the store, and by two block reductions.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_all_sums` of `labkit.parts.sums`.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_all_sums
from labkit.parts.vector_widths import specialise_type_and_alignment

FORMATS = FP32, BF16, FP16
BENCHED = ((32, 512, 7, 7),)  # timed sizes
COMPARED = 32, 512, 7, 7  # the timed size by which steps are compared
LARGEST = (630, 1, 7, 7), (512, 1, 8, 8)  # also tested: the most work per thread
WIDTH = 4  # neighbours per vector
PER_THREAD, MAX_PER_THREAD = 1, 8  # vectors per thread
VECTORS = 13  # of four neighbours, per plane
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
ONE_WAVE_ONLY = True  # chosen only if all blocks are resident: a second wave would wait for memory again
SM_THREADS = 1024  # with 64 registers each
specialise_once = lru_cache(128)(specialise)  # copies: one per size of planes


@cuda.jit(launch_bounds=WARP * MAX_WARPS)
def in_registers(x, weight, bias, y, mean, variance, running_mean, running_variance, images, eps, momentum, relu):
    x_reg = cuda.local.array((PER_THREAD, WIDTH), np.float32)
    warp_partials = cuda.shared.array((3, MAX_WARPS), np.float32)
    sums = cuda.local.array(2, np.float32)
    t, threads, c = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.blockIdx.x)
    pixels, channels = np.uint32(x.shape[1]), np.uint32(cuda.gridDim.x)
    num_values = np.float32(images * pixels)
    for k in range(PER_THREAD):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, image * channels + c, i)
    gamma, shift, old_mean, old_variance = weight[c], bias[c], running_mean[c], running_variance[c]

    sums[0] = np.float32(0)
    for k in range(PER_THREAD):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        for e in range(WIDTH):
            if image < images and i + e < pixels:
                sums[0] += x_reg[k, e]
    block_all_sums(sums, warp_partials[:1], 1)
    rough_mean = sums[0] / num_values

    sums[0] = sums[1] = np.float32(0)
    for k in range(PER_THREAD):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        for e in range(WIDTH):
            if image < images and i + e < pixels:
                value = x_reg[k, e] - rough_mean
                sums[0] += value
                sums[1] += value * value
    block_all_sums(sums, warp_partials[1:], 2)
    deviations, squares = sums[0], sums[1]
    centre = rough_mean + deviations / num_values
    squares -= deviations * (deviations / num_values)
    scale = gamma / sqrt(squares / num_values + eps)
    if t == 0:
        mean[c] = centre
        variance[c] = squares / num_values
        keep = np.float32(1) - momentum
        running_mean[c] = keep * old_mean + momentum * centre
        running_variance[c] = keep * old_variance + momentum * squares / (num_values - np.float32(1))

    for k in range(PER_THREAD):
        image, i = (t + k * threads) // VECTORS, (t + k * threads) % VECTORS * WIDTH
        if image < images:
            for e in range(WIDTH):
                value = (x_reg[k, e] - centre) * scale + shift
                x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
            store_row_four(y, image * channels + c, i, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def geometry(problem) -> tuple[int, int, int]:
    """Return vectors per plane, vectors per thread and threads per block; raise TooLarge if a channel does not fit."""
    vectors = -(-problem.H * problem.W // WIDTH)
    all_vectors = problem.N * vectors
    if all_vectors > WARP * MAX_WARPS * MAX_PER_THREAD:
        raise TooLarge(f"a channel has {all_vectors} vectors, and a block keeps {WARP * MAX_WARPS * MAX_PER_THREAD}")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    threads = max(WARP, SM_THREADS // -(-problem.C // sms))  # threads per block for which all blocks are resident
    per_thread = min(MAX_PER_THREAD, -(-all_vectors // threads))
    return vectors, per_thread, WARP * -(-all_vectors // (per_thread * WARP))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_planes(x, y)
    vectors, per_thread, threads = geometry(problem)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    kernel = specialise_type_and_alignment(
        specialise_once(in_registers, VECTORS=vectors, PER_THREAD=per_thread), x, y, dtype=format.dtype
    )
    return [Launch(kernel, problem.C, threads, arguments)]
