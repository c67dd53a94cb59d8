"""Several blocks share a channel, and each thread has four loads of 16 bytes under way.

Memory takes 350 ns to answer at best, in which an H100 could deliver 1 MB: 8 KB for each of its SMs must be asked for
at any time. So a channel is cut into pieces of 256 neighbours, of dy and of x, and the warps of several blocks take
turns at them; the block of a channel that is last to be done adds up what all have found, always in the same order.
There are so many blocks that all run at once.

Costs, in passes over memory, each of them all values read or written once:

    2       split: dy and x read
    3       masked_again: dy and x read, dx written
    5       passes in all

Limited by memory. `s05_last_first` finds some of what the first pass read in L2.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_sum`, `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import BF16, FP32
from labkit.ladder import Launch
from labkit.norm.batch_backward import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_sum, is_last_block
from labkit.parts.vector_widths import specialise_fours

FORMATS = FP32, BF16
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
LOADS = 2  # of 16 bytes, that a thread has under way of each array
STRIDE = 4 * WARP  # pixels that a warp loads at once
PIECE = LOADS * STRIDE
RESIDENT = 4  # blocks that sum, of an SM


@cuda.jit(launch_bounds=(WARP * WARPS, RESIDENT))
def split(dy, x, weight, bias, mean, variance, dweight, dbias, partials, arrived, images, eps, relu):
    gradient = cuda.local.array((LOADS, 4), np.float32)
    own = cuda.local.array((LOADS, 4), np.float32)
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    part, parts = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    total = products = np.float32(0)
    for piece in range(part * WARPS + t // WARP, images * pieces, parts * WARPS):
        plane = np.uint32(piece // pieces) * channels + c
        start = np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, plane, i)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
        for k in range(LOADS):
            for e in range(4):
                if np.uint32(start + k * STRIDE + e) < pixels:
                    g, away = gradient[k, e], own[k, e] - centre
                    g = np.float32(0) if relu and away * scale + shift <= np.float32(0) else g  # a NaN is not below 0
                    total += g
                    products += g * away
    total, products = block_sum(total, of_warps[0]), block_sum(products, of_warps[1])
    if t == 0:
        partials[0, c, part], partials[1, c, part] = total, products

    if is_last_block(arrived, c, parts):
        total = products = np.float32(0)
        if t < parts:
            total, products = partials[0, c, t], partials[1, c, t]
        total, products = block_sum(total, of_warps[0]), block_sum(products, of_warps[1])
        if t == 0:
            dbias[c] = total
            dweight[c] = products / root


@cuda.jit
def masked_again(dy, x, weight, bias, mean, variance, dx, dweight, dbias, channels, values, eps, relu):
    gradient = cuda.local.array((LOADS, 4), np.float32)
    own = cuda.local.array((LOADS, 4), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    piece = cuda.blockIdx.x * WARPS + t // WARP
    plane, start = np.uint32(piece // pieces), np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
    if plane < x.shape[0]:
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, plane, i)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
        c = np.uint32(plane % channels)
        centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
        scale, share, slope = weight[c] / root, dbias[c] / values, dweight[c] / values / root
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                for e in range(4):
                    g, away = gradient[k, e], own[k, e] - centre
                    g = np.float32(0) if relu and away * scale + shift <= np.float32(0) else g
                    own[k, e] = scale * (g - share - away * slope)
                store_row_four(dx, plane, i, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def parts_of(problem) -> int:
    """How many blocks share a channel: all run at once, each warp has a piece, and threads add up what blocks found."""
    pieces = problem.N * -(-problem.H * problem.W // PIECE)
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return max(1, min(blocks // problem.C, pieces // WARPS, WARP * WARPS))


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """dx, dweight and dbias, of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshaped(X, *planes_of(X.shape)) for X in (dy, x, dx))
    parts, pieces = parts_of(problem), x.shape[0] * -(-x.shape[1] // PIECE)
    kept = workspace.array("partials", (2, problem.C, parts), np.float32), workspace.counters(problem.C)
    given, eps, values = (dy, x, weight, bias, mean, variance), np.float32(problem.eps), np.float32(problem.values)
    sums = *given, dweight, dbias, *kept, np.uint32(problem.N), eps, problem.relu
    line = *given, dx, dweight, dbias, np.uint32(problem.C), values, eps, problem.relu
    return [
        Launch(specialise_fours(split, dy, x), (problem.C, parts), WARP * WARPS, sums),
        Launch(specialise_fours(masked_again, dy, x, dx), -(-pieces // WARPS), WARP * WARPS, line),
    ]
