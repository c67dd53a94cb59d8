"""One pass masks the gradients and sums them, of what it has in registers; the other begins where that one ended.

Several blocks share a channel, and each thread has six loads of 16 bytes under way. The second pass begins with the
images that L2 still holds.

Costs, in passes over memory, each of them all values read or written once:

    4       split: dy, x and y read, dresidual written
    3       gradients: dresidual and x read, dx written
    7       passes in all

Limited by memory. `s03_one_read` keeps a channel of x and of the masked gradients on the chip.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_sum`, `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.problem import planes_of
from labkit.norm.residual_backward import TAKES
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_sum, is_last_block
from labkit.parts.vector_widths import specialise_fours

WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
LOADS = 2  # of 16 bytes, that a thread has under way of each array
STRIDE = 4 * WARP  # pixels that a warp loads at once
PIECE = LOADS * STRIDE
RESIDENT = 4  # blocks that sum, of an SM


@cuda.jit(launch_bounds=(WARP * WARPS, RESIDENT))
def split(dy, x, y, mean, variance, dresidual, dweight, dbias, partials, arrived, images, eps, relu):
    gradient = cuda.local.array((LOADS, 4), np.float32)
    own = cuda.local.array((LOADS, 4), np.float32)
    above = cuda.local.array((LOADS, 4), np.float32)
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    part, parts = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    centre = mean[c]
    total = products = np.float32(0)
    for piece in range(part * WARPS + t // WARP, images * pieces, parts * WARPS):
        plane = np.uint32(piece // pieces) * channels + c
        start = np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3] = load_row_four(dy, plane, i)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
                above[k, 0], above[k, 1], above[k, 2], above[k, 3] = load_row_four(y, plane, i)
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            for e in range(4):
                if i + e < pixels:
                    if relu and above[k, e] <= np.float32(0):  # a NaN is not below zero
                        gradient[k, e] = np.float32(0)
                    total += gradient[k, e]
                    products += gradient[k, e] * (own[k, e] - centre)
            if i < pixels:
                store_row_four(dresidual, plane, i, gradient[k, 0], gradient[k, 1], gradient[k, 2], gradient[k, 3])
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
            dweight[c] = products / sqrt(variance[c] + eps)


@cuda.jit
def gradients(dresidual, x, weight, mean, variance, dx, dweight, dbias, channels, values, eps):
    g = cuda.local.array((LOADS, 4), np.float32)
    own = cuda.local.array((LOADS, 4), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # of a plane
    piece = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * WARPS + t // WARP
    plane, start = np.uint32(piece // pieces), np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
    if plane < x.shape[0]:
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                g[k, 0], g[k, 1], g[k, 2], g[k, 3] = load_row_four(dresidual, plane, i)
                own[k, 0], own[k, 1], own[k, 2], own[k, 3] = load_row_four(x, plane, i)
        c = np.uint32(plane % channels)
        centre, root = mean[c], sqrt(variance[c] + eps)
        scale, share, slope = weight[c] / root, dbias[c] / values, dweight[c] / values / root
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                for e in range(4):
                    own[k, e] = scale * (g[k, e] - share - (own[k, e] - centre) * slope)
                store_row_four(dx, plane, i, own[k, 0], own[k, 1], own[k, 2], own[k, 3])


def parts_of(problem) -> int:
    """How many blocks share a channel: all run at once, each warp has a piece, and threads add up what blocks found."""
    pieces = problem.N * -(-problem.H * problem.W // PIECE)
    blocks = RESIDENT * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return max(1, min(blocks // problem.C, pieces // WARPS, WARP * WARPS))


def launches(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, problem, workspace, format=FP32):
    """dx, dresidual, dweight and dbias, of images in NCHW."""
    arrays = dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, y, dx, dresidual = (reshaped(X, *planes_of(X.shape)) for X in (dy, x, y, dx, dresidual))
    parts, pieces = parts_of(problem), x.shape[0] * -(-x.shape[1] // PIECE)
    kept = workspace.array("partials", (2, problem.C, parts), np.float32), workspace.counters(problem.C)
    eps, values = np.float32(problem.eps), np.float32(problem.values)
    sums = dy, x, y, mean, variance, dresidual, dweight, dbias, *kept, np.uint32(problem.N), eps, problem.relu
    line = dresidual, x, weight, mean, variance, dx, dweight, dbias, np.uint32(problem.C), values, eps
    return [
        Launch(specialise_fours(split, dy, x, y, dresidual), (problem.C, parts), WARP * WARPS, sums),
        Launch(specialise_fours(gradients, dresidual, x, dx), -(-pieces // WARPS), WARP * WARPS, line),
    ]
