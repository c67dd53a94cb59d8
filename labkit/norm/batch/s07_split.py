"""Several blocks share a channel, and each thread has four 16-byte loads in flight.

Memory latency is at least 350 ns, in which an H100 transfers 1 MB: each of its SMs needs 8 KB in flight at any time. In
the previous step the 1024 threads of a block have 4 KB in flight, by dependent 4-byte loads. With 64 channels, one
block each, half of the SMs are idle. Here a channel is cut into pieces of 512 neighbours, which the warps of several
blocks process in turn. The last block to finish a channel merges the moments of all. All blocks are resident at once:
2.5 waves of blocks would take as long as 3.

Costs in passes over memory, each of which reads or writes all values once:

    1       split: read
    2       fused: read, written
    3       passes in all

Limited by memory. `s08_last_first` finds part of the first pass's data in L2.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `merge_moments`, `block_moments` of
`labkit.parts.moments`; `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch
from labkit.norm.batch import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.moments import MOMENT_FIELDS, block_moments, merge_moments
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_type_and_alignment

FORMATS = FP32, BF16, FP16
WARP, WARPS = 32, 8  # threads per warp, and warps per block
LOADS = 4  # 16-byte loads in flight per thread
STRIDE = 4 * WARP  # pixels per load of a warp
PIECE = LOADS * STRIDE
BLOCKS_PER_SM = 4  # in the kernel that sums


@cuda.jit(launch_bounds=(WARP * WARPS, BLOCKS_PER_SM))
def split(x, mean, variance, running_mean, running_variance, partials, arrived, images, momentum):
    x_reg = cuda.local.array((LOADS, 4), np.float32)
    warp_moments = cuda.shared.array((MOMENT_FIELDS, WARPS), np.float32)
    t, c, channels = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    block, num_blocks = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # per plane
    count = average = mean_low = m2 = np.float32(0)  # m2: sum of squared deviations from the mean
    for piece in range(block * WARPS + t // WARP, images * pieces, num_blocks * WARPS):
        plane = np.uint32(piece // pieces) * channels + c
        start = np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, plane, i)
        if start < pixels:
            first = x_reg[0, 0]
            num_values = shifted_sum = shifted_squares = np.float32(0)
            for k in range(LOADS):
                valid = min(np.uint32(4), max(pixels, np.uint32(start + k * STRIDE)) - np.uint32(start + k * STRIDE))
                for e in range(4):
                    if e < valid:
                        value = x_reg[k, e] - first
                        shifted_sum += value
                        shifted_squares += value * value
                num_values += np.float32(valid)
            shifted_mean = shifted_sum / num_values
            shifted_squares -= shifted_sum * shifted_mean
            count, average, mean_low, m2 = merge_moments(
                count, average, mean_low, m2, num_values, first, shifted_mean, shifted_squares
            )
    count, average, mean_low, m2 = block_moments(count, average, mean_low, m2, warp_moments)
    if t == 0:
        partials[0, c, block], partials[1, c, block] = count, average
        partials[2, c, block], partials[3, c, block] = mean_low, m2

    if is_last_block(arrived, c, num_blocks):  # `arrived`: 0 before and after each launch
        count = average = mean_low = m2 = np.float32(0)
        if t < num_blocks:
            count, average = partials[0, c, t], partials[1, c, t]
            mean_low, m2 = partials[2, c, t], partials[3, c, t]
        num_values, average, mean_low, m2 = block_moments(count, average, mean_low, m2, warp_moments)
        if t == 0:
            average += mean_low
            mean[c] = average
            variance[c] = m2 / num_values
            keep = np.float32(1) - momentum
            running_mean[c] = keep * running_mean[c] + momentum * average
            running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))


@cuda.jit
def fused(x, mean, variance, weight, bias, y, channels, eps, relu):
    x_reg = cuda.local.array((LOADS, 4), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # per plane
    piece = cuda.blockIdx.x * WARPS + t // WARP
    plane, start = np.uint32(piece // pieces), np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
    if plane < x.shape[0]:
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, plane, i)
        c = np.uint32(plane % channels)
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                for e in range(4):
                    value = (x_reg[k, e] - centre) * scale + shift
                    x_reg[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
                store_row_four(y, plane, i, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def blocks_per_channel(problem) -> int:
    """Return blocks per channel: all are resident, each warp has a piece, and one block can merge all."""
    pieces = problem.N * -(-problem.H * problem.W // PIECE)
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return max(1, min(blocks // problem.C, pieces // WARPS, WARP * WARPS))


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_planes(x, y)
    blocks, pieces = blocks_per_channel(problem), x.shape[0] * -(-x.shape[1] // PIECE)
    partials = workspace.array("partials", (MOMENT_FIELDS, problem.C, blocks), np.float32)
    statistics = mean, variance, running_mean, running_variance, partials, workspace.counters(problem.C)
    sum_args = x, *statistics, np.uint32(problem.N), np.float32(problem.batch_weight)
    y_args = x, mean, variance, weight, bias, y, np.uint32(problem.C), np.float32(problem.eps), problem.relu
    return [
        Launch(
            specialise_type_and_alignment(split, x, dtype=format.dtype), (problem.C, blocks), WARP * WARPS, sum_args
        ),
        Launch(
            specialise_type_and_alignment(fused, x, y, dtype=format.dtype), -(-pieces // WARPS), WARP * WARPS, y_args
        ),
    ]
