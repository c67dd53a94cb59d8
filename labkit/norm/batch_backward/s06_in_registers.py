"""One block keeps a small channel in registers: dy and x are read once, and blocks do not wait for each other.

A channel of 32 images of 7 x 7 pixels has 1568 values, four for each of 416 threads, which read neighbours. Registers
hold the masked gradients and the distances from the mean. The block computes both sums with one barrier, and each
thread writes its dx.

Costs in passes over memory, each of which reads or writes all values once:

    3       in_registers: dy and x read, dx written
    3       passes in all

Limited by memory latency, once for the load and once for the store, and by the block reduction. Larger channels do not
fit. `s07_one_read` keeps them in the shared memory of several blocks.

Parts: `block_all_sum2` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from labkit import cuda, specialise
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch_backward import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import element_constants
from labkit.parts.vectors import load, store

FORMATS = FP32, BF16, FP16
BENCHED = (32, 512, 7, 7), (8, 2048, 7, 7)  # timed sizes
COMPARED = 32, 512, 7, 7  # the timed size by which steps are compared
LARGEST = (167, 1, 7, 7), (8192, 1, 1, 1), (128, 1, 8, 8)  # also tested: the most work per thread
PER_THREAD, MAX_PER_THREAD = 4, 16  # values per thread and array
SM_THREADS = 2048  # that an SM holds at a time, with up to 4 values each
MAX_THREADS = 512  # per block; more if `geometry` gives its threads fewer values
PIXELS = 49  # per plane
WARP, MAX_WARPS = 32, 18  # threads per warp, and warps per block
ONE_WAVE_ONLY = True  # chosen only if all blocks are resident: a second wave would wait for memory again


@lru_cache(128)  # copies: one per size of planes
def specialise_once(bounds: tuple[int, int], **constants):
    """Return the kernel with these constants, bounded by threads per block and blocks per SM."""
    return specialise(cuda.jit(launch_bounds=bounds)(in_registers.py_func), **constants)


@cuda.jit
def in_registers(dy, x, weight, bias, mean, variance, dx, dweight, dbias, images, eps, relu):
    dy_reg = cuda.local.array(PER_THREAD, np.float32)
    x_reg = cuda.local.array(PER_THREAD, np.float32)
    element = cuda.local.array(1, np.float32)
    warp_partials = cuda.shared.array((2, MAX_WARPS), np.float32)
    t, threads, c = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(cuda.blockIdx.x)
    channels = np.uint32(cuda.gridDim.x)
    for k in range(PER_THREAD):  # without a branch, in which 16-bit numbers would be converted before the next load
        element_index = np.uint32(t + k * threads)
        image, i = min(np.uint32(element_index // PIXELS), np.uint32(images - 1)), np.uint32(element_index % PIXELS)
        load(dy, image * channels + c, i, element)
        dy_reg[k] = element[0]
        load(x, image * channels + c, i, element)
        x_reg[k] = element[0]

    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    g_sum = gx_sum = np.float32(0)
    for k in range(PER_THREAD):
        if (t + k * threads) // PIXELS < images:
            x_reg[k] -= centre
            if relu and x_reg[k] * scale + shift <= np.float32(0):  # a NaN is not below zero
                dy_reg[k] = np.float32(0)
            g_sum += dy_reg[k]
            gx_sum += dy_reg[k] * x_reg[k]
    g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials)
    if t == 0:
        dbias[c] = g_sum
        dweight[c] = gx_sum / root

    num_values = np.float32(images * PIXELS)
    g_mean, slope = g_sum / num_values, gx_sum / num_values / (root * root)
    for k in range(PER_THREAD):
        image, i = (t + k * threads) // PIXELS, (t + k * threads) % PIXELS
        if image < images:
            element[0] = scale * (dy_reg[k] - g_mean - x_reg[k] * slope)
            store(dx, image * channels + c, i, element)


def geometry(problem, limit: int = MAX_PER_THREAD) -> tuple[int, int]:
    """Return values per thread, within a limit, and threads per block; raise TooLarge if a channel does not fit.

    Many channels have blocks of fewer threads with more values, so that all blocks are resident.
    """
    resident_warps = SM_THREADS * cuda.get_current_device().MULTIPROCESSOR_COUNT // (WARP * problem.C)  # per block
    threads = min(MAX_THREADS, WARP * max(1, resident_warps))
    per_thread = -(-problem.values // threads)
    if problem.values > MAX_THREADS * MAX_PER_THREAD:
        raise TooLarge(f"a channel has {problem.values} values, and a block keeps {MAX_THREADS * MAX_PER_THREAD}")
    per_thread = min(per_thread, limit)
    return per_thread, WARP * -(-problem.values // (per_thread * WARP))


def blocks_per_sm(channels: int, threads: int, per_thread: int) -> int:
    """Return the blocks of an SM that make all resident, within its registers: 32 per thread for up to 4 values."""
    needed = -(-channels // cuda.get_current_device().MULTIPROCESSOR_COUNT)
    return max(1, min(needed, SM_THREADS * PER_THREAD // (threads * max(PER_THREAD, per_thread))))


def register_limit(pixels: int, format) -> int:
    """Return the most values that a thread's registers hold.

    For 16 float32 values the compiler also keeps each index, unless planes are a power of two: that takes 144
    registers, and a thread of a block of 512 has 128. Such planes need larger blocks, with 15 values per thread.
    """
    return MAX_PER_THREAD - 1 if format is FP32 and pixels & (pixels - 1) else MAX_PER_THREAD


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_planes(dy, x, dx)
    pixels = problem.H * problem.W
    per_thread, threads = geometry(problem, register_limit(pixels, format))
    numbers = np.uint32(problem.N), np.float32(problem.eps), problem.relu
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, *numbers
    constants = {"PIXELS": pixels, "PER_THREAD": per_thread}
    constants |= element_constants(format.dtype, 1)
    kernel = specialise_once((threads, blocks_per_sm(problem.C, threads, per_thread)), **constants)
    return [Launch(kernel, problem.C, threads, arguments)]
