"""One pass masks the gradients and sums them in registers; the second one runs in reverse order.

Several blocks share a channel, and each thread has six 16-byte loads in flight. The second pass starts with the images
that L2 still holds.

Costs in passes over memory, each of which reads or writes all values once:

    4       split: dy, x and y read, dresidual written
    3       gradients: dresidual and x read, dx written
    7       passes in all

Limited by memory. `s03_one_read` keeps a channel of x and of the masked gradients on the chip.

Parts: `load_row_four`, `store_row_four` of `labkit.parts.fours`; `block_sum`, `is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.images import as_planes
from labkit.norm.residual_backward import SUPPORTED
from labkit.parts.fours import load_row_four, store_row_four
from labkit.parts.sums import block_sum, is_last_block
from labkit.parts.vector_widths import specialise_type_and_alignment

WARP, WARPS = 32, 8  # threads per warp, and warps per block
LOADS = 2  # 16-byte loads in flight per thread and array
STRIDE = 4 * WARP  # pixels per load of a warp
PIECE = LOADS * STRIDE
BLOCKS_PER_SM = 4  # in the kernel that sums


@cuda.jit(launch_bounds=(WARP * WARPS, BLOCKS_PER_SM))
def split(dy, x, y, mean, variance, dresidual, dweight, dbias, partials, arrived, images, eps, relu):
    dy_reg = cuda.local.array((LOADS, 4), np.float32)
    x_reg = cuda.local.array((LOADS, 4), np.float32)
    y_reg = cuda.local.array((LOADS, 4), np.float32)
    warp_partials = cuda.shared.array((2, WARPS), np.float32)
    t, c, channels = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    block, num_blocks = np.uint32(cuda.blockIdx.y), np.uint32(cuda.gridDim.y)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # per plane
    centre = mean[c]
    g_sum = gx_sum = np.float32(0)
    for piece in range(block * WARPS + t // WARP, images * pieces, num_blocks * WARPS):
        plane = np.uint32(piece // pieces) * channels + c
        start = np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                dy_reg[k, 0], dy_reg[k, 1], dy_reg[k, 2], dy_reg[k, 3] = load_row_four(dy, plane, i)
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, plane, i)
                y_reg[k, 0], y_reg[k, 1], y_reg[k, 2], y_reg[k, 3] = load_row_four(y, plane, i)
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            for e in range(4):
                if i + e < pixels:
                    if relu and y_reg[k, e] <= np.float32(0):  # a NaN is not below zero
                        dy_reg[k, e] = np.float32(0)
                    g_sum += dy_reg[k, e]
                    gx_sum += dy_reg[k, e] * (x_reg[k, e] - centre)
            if i < pixels:
                store_row_four(dresidual, plane, i, dy_reg[k, 0], dy_reg[k, 1], dy_reg[k, 2], dy_reg[k, 3])
    g_sum, gx_sum = block_sum(g_sum, warp_partials[0]), block_sum(gx_sum, warp_partials[1])
    if t == 0:
        partials[0, c, block], partials[1, c, block] = g_sum, gx_sum

    if is_last_block(arrived, c, num_blocks):  # `arrived`: 0 before and after each launch
        g_sum = gx_sum = np.float32(0)
        if t < num_blocks:
            g_sum, gx_sum = partials[0, c, t], partials[1, c, t]
        g_sum, gx_sum = block_sum(g_sum, warp_partials[0]), block_sum(gx_sum, warp_partials[1])
        if t == 0:
            dbias[c] = g_sum
            dweight[c] = gx_sum / sqrt(variance[c] + eps)


@cuda.jit
def gradients(dresidual, x, weight, mean, variance, dx, dweight, dbias, channels, num_values, eps):
    g_reg = cuda.local.array((LOADS, 4), np.float32)
    x_reg = cuda.local.array((LOADS, 4), np.float32)
    t = np.uint32(cuda.threadIdx.x)
    pixels = np.uint32(x.shape[1])
    pieces = np.uint32((pixels + PIECE - 1) // PIECE)  # per plane
    piece = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * WARPS + t // WARP
    plane, start = np.uint32(piece // pieces), np.uint32(piece % pieces * PIECE + 4 * (t % WARP))
    if plane < x.shape[0]:
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                g_reg[k, 0], g_reg[k, 1], g_reg[k, 2], g_reg[k, 3] = load_row_four(dresidual, plane, i)
                x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3] = load_row_four(x, plane, i)
        c = np.uint32(plane % channels)
        centre, root = mean[c], sqrt(variance[c] + eps)
        scale, g_mean, slope = weight[c] / root, dbias[c] / num_values, dweight[c] / num_values / root
        for k in range(LOADS):
            i = np.uint32(start + k * STRIDE)
            if i < pixels:
                for e in range(4):
                    x_reg[k, e] = scale * (g_reg[k, e] - g_mean - (x_reg[k, e] - centre) * slope)
                store_row_four(dx, plane, i, x_reg[k, 0], x_reg[k, 1], x_reg[k, 2], x_reg[k, 3])


def blocks_per_channel(problem) -> int:
    """Return blocks per channel: all are resident, each warp has a piece, and one block can add all sums."""
    pieces = problem.N * -(-problem.H * problem.W // PIECE)
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    return max(1, min(blocks // problem.C, pieces // WARPS, WARP * WARPS))


def launches(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for dx, dresidual, dweight and dbias of images in NCHW."""
    arrays = dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, y, dx, dresidual = as_planes(dy, x, y, dx, dresidual)
    blocks, pieces = blocks_per_channel(problem), x.shape[0] * -(-x.shape[1] // PIECE)
    statistics = workspace.array("partials", (2, problem.C, blocks), np.float32), workspace.counters(problem.C)
    eps, values = np.float32(problem.eps), np.float32(problem.values)
    sum_args = dy, x, y, mean, variance, dresidual, dweight, dbias, *statistics, np.uint32(problem.N), eps, problem.relu
    dx_args = dresidual, x, weight, mean, variance, dx, dweight, dbias, np.uint32(problem.C), values, eps
    return [
        Launch(
            specialise_type_and_alignment(split, dy, x, y, dresidual, dtype=format.dtype),
            (problem.C, blocks),
            WARP * WARPS,
            sum_args,
        ),
        Launch(
            specialise_type_and_alignment(gradients, dresidual, x, dx, dtype=format.dtype),
            -(-pieces // WARPS),
            WARP * WARPS,
            dx_args,
        ),
    ]
