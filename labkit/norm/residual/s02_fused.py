"""The residual is added, and the sum rectified, in the register in which the value was scaled.

The first pass finds the statistics as in `norm/batch/s08_last_first`: several blocks share a channel, and the second
pass begins with the images that L2 still holds.

Costs, in passes over memory, each of them all values read or written once:

    1       split: x read
    3       fused: x and the residual read, y written
    4       passes in all

Limited by memory. `s03_one_read` keeps a channel of x on the chip.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `merge_moments`, `block_moments` of
`labkit.parts.moments`; `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.problem import planes_of
from labkit.norm.residual import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.moments import ROWS, block_moments, merge_moments
from labkit.parts.sums import is_last_block
from labkit.parts.vector_widths import specialise_fours

WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
LOADS = 4  # of 16 bytes, that a thread has under way of each array
STRIDE = 4 * WARP  # pixels that a warp loads at once
PIECE = LOADS * STRIDE
RESIDENT = 4  # blocks that sum, of an SM


@cuda.jit(launch_bounds=(WARP * WARPS, RESIDENT))
def split(x, mean, variance, running_mean, running_variance, partials, arrived, images, factor):
    own = cuda.local.array((LOADS, 4), np.float32)
    of_warps = cuda.shared.array((ROWS, WARPS), np.float32)
    t, c, channels = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    part, parts = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    count = average = rest = squares = np.float32(0)
    for piece in range(part * WARPS + t // WARP, images * pieces, parts * WARPS):
        plane = np.uint32(piece // pieces) * channels + c
        start = np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
        if start < pixels:
            first = own[0, 0]
            values = total = own_squares = np.float32(0)
            for k in range(LOADS):
                there = min(np.uint32(4), max(pixels, np.uint32(start + k * STRIDE)) - np.uint32(start + k * STRIDE))
                for e in range(4):
                    if e < there:
                        value = own[k, e] - first
                        total += value
                        own_squares += value * value
                values += np.float32(there)
            share = total / values
            own_squares -= total * share
            count, average, rest, squares = merge_moments(
                count, average, rest, squares, values, first, share, own_squares
            )
    count, average, rest, squares = block_moments(count, average, rest, squares, of_warps)
    if t == 0:
        partials[0, c, part], partials[1, c, part] = count, average
        partials[2, c, part], partials[3, c, part] = rest, squares

    if is_last_block(arrived, c, parts):
        count = average = rest = squares = np.float32(0)
        if t < parts:
            count, average = partials[0, c, t], partials[1, c, t]
            rest, squares = partials[2, c, t], partials[3, c, t]
        values, average, rest, squares = block_moments(count, average, rest, squares, of_warps)
        if t == 0:
            average += rest
            mean[c] = average
            variance[c] = squares / values
            keep = np.float32(1) - factor
            running_mean[c] = keep * running_mean[c] + factor * average
            running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))


@cuda.jit
def fused(x, residual, mean, variance, weight, bias, y, channels, eps, relu):
    own = cuda.local.array((LOADS, 4), np.float32)
    beside = cuda.local.array((LOADS, 4), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    piece = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * WARPS + t // WARP
    plane, start = np.uint32(piece // pieces), np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
    if plane < x.shape[0]:
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
                beside[k, 0], beside[k, 1], beside[k, 2], beside[k, 3] = load_row_four(residual, plane, i)
        c = np.uint32(plane % channels)
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                for e in range(4):
                    value = (own[k, e] - centre) * scale + shift + beside[k, e]
                    own[k, e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
                store_row_four(y, plane, i, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def parts_of(problem) -> int:
    """How many blocks share a channel: all run at once, each warp has a piece, and threads merge what blocks found."""
    pieces = problem.N * -(-problem.H * problem.W // PIECE)
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return max(1, min(blocks // problem.C, pieces // WARPS, WARP * WARPS))


def launches(
    x, residual, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32
):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, residual, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, residual, y = (reshaped(X, *planes_of(X.shape)) for X in (x, residual, y))
    parts, pieces = parts_of(problem), x.shape[0] * -(-x.shape[1] // PIECE)
    partials = workspace.array("partials", (ROWS, problem.C, parts), np.float32)
    kept = mean, variance, running_mean, running_variance, partials, workspace.counters(problem.C)
    sums = x, *kept, np.uint32(problem.N), np.float32(problem.factor)
    line = x, residual, mean, variance, weight, bias, y, np.uint32(problem.C), np.float32(problem.eps), problem.relu
    return [
        Launch(specialise_fours(split, x), (problem.C, parts), WARP * WARPS, sums),
        Launch(specialise_fours(fused, x, residual, y), -(-pieces // WARPS), WARP * WARPS, line),
    ]
