"""Persistent clusters: a used value makes room for the next channel, and L2 caches what does not fit.

All clusters are resident, and each claims one channel after the other from a counter: the number of clusters depends on
which SMs are neighbours, and differs between H100s. A thread that has written dx immediately copies dy and x of the
next channel into the same slots, which no other thread accesses. Loads and stores overlap, as in a copy; only the sums
interrupt them. The exchange buffer of the warps is double, so that one barrier per channel suffices.

A channel of 32 images of 112 x 112 pixels has 3.2 MB of dy and x, and a cluster keeps 1.8 MB. The remainder is read
after the copies have arrived, and again at the start of the pass that writes dx. The 16 resident clusters have 22 MB in
between, which an L2 of 50 MB (H100) still holds.

Costs in passes over memory, each of which reads or writes all values once:

    3       overlapped: dy and x read, dx written; where a cluster has no room, read again, from L2
    3       passes in all

Limited by memory, and by the pause in which all warps of a cluster sum and wait: a copy of the same bytes takes four
fifths of the time (H100, 64 x 256 x 56 x 56 in float32).

Parts: `warp_sum` of `labkit.parts.sums`; `copy_async`, `load`, `load_shared`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch
from labkit.norm.batch_backward import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store

FORMATS = FP32, BF16, FP16
CLUSTER = 8  # blocks per channel
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours per vector
ELEMENT = np.float32  # element type of images
MIN_COPIES = 4  # per thread and array
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
MAX_BYTES = 222 * 1024  # of dynamic shared memory per block; 4 KB remain for the exchange between warps
HALF_BYTES = 108 * 1024  # two such blocks fit into an SM
MAX_BLOCKS_PER_SM = 4
FULL_MASK = 0xFFFFFFFF


@cuda.jit(device=True)
def apply_mask(dy_reg, x_reg, centre, scale, shift, relu):
    """Set gradients that did not pass ReLU to zero, and subtract the mean from the values; both in place."""
    for e in range(WIDTH):
        x_reg[e] -= centre
        if relu and x_reg[e] * scale + shift <= np.float32(0):  # a NaN is not below zero
            dy_reg[e] = np.float32(0)


@cuda.jit(cluster=CLUSTER)
def overlapped(
    dy, x, weight, bias, mean, variance, dx, dweight, dbias, counter, images, capacity, num_values, eps, relu
):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)  # `capacity` vectors of dy, then the same of x
    dy_reg = cuda.local.array(WIDTH, np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array((2, 2, CLUSTER, MAX_WARPS), np.float32)
    next_channels = cuda.shared.array(2, np.uint32)  # two buffers, used alternately by channels
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    lane, warps = np.uint32(t % WARP), np.uint32(threads // WARP)
    channels = np.uint32(weight.shape[0])
    counter_wrap = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # a wasted claim ends each cluster, the last at 0
    vectors = np.uint32(x.shape[1] // WIDTH)  # per plane
    vectors_per_block = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)
    offset = min(rank * vectors_per_block, images * vectors)
    count = np.uint32(min(offset + vectors_per_block, images * vectors) - offset)
    num_resident = min(count, capacity)

    # -- claim the first channel and load it --
    ptx.cluster_sync()
    if rank == 0 and t == 0:
        first_c = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        for block in range(CLUSTER):
            ptx.cluster_store(next_channels, 0, block, first_c)
    ptx.cluster_sync()
    c = next_channels[0]
    if c < channels:
        for v in range(t, num_resident, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            copy_async(smem, WIDTH * v, dy, image * channels + c, WIDTH * i)
            copy_async(smem, WIDTH * (capacity + v), x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()

    phase = np.uint32(0)
    while c < channels:
        # -- claim the next channel --
        next_c = np.uint32(0)
        if rank == 0 and t == 0:
            next_c = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        # -- sum the values of this channel --
        centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
        scale = weight[c] / root
        g_sum = gx_sum = np.float32(0)
        ptx.cp_async_wait(0)
        for v in range(t, num_resident, threads):
            load_shared(smem, WIDTH * v, dy_reg)
            load_shared(smem, WIDTH * (capacity + v), x_reg)
            apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
            for e in range(WIDTH):
                g_sum += dy_reg[e]
                gx_sum += dy_reg[e] * x_reg[e]
        for v in range(num_resident + t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            load(dy, image * channels + c, WIDTH * i, dy_reg)
            load(x, image * channels + c, WIDTH * i, x_reg)
            apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
            for e in range(WIDTH):
                g_sum += dy_reg[e]
                gx_sum += dy_reg[e] * x_reg[e]
        g_sum, gx_sum = cuda.shfl_sync(FULL_MASK, warp_sum(g_sum), 0), cuda.shfl_sync(FULL_MASK, warp_sum(gx_sum), 0)
        # -- exchange within the cluster --
        if lane < CLUSTER:
            ptx.cluster_store(warp_partials, (phase, 0, rank, t // WARP), lane, g_sum)
            ptx.cluster_store(warp_partials, (phase, 1, rank, t // WARP), lane, gx_sum)
        if rank == 0 and t == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(next_channels, 1 - phase, block, next_c)
        ptx.cluster_sync()

        # -- sums of this channel --
        g_sum = gx_sum = np.float32(0)
        if lane < warps:
            for block in range(CLUSTER):
                g_sum += warp_partials[phase, 0, block, lane]
                gx_sum += warp_partials[phase, 1, block, lane]
        g_sum, gx_sum = cuda.shfl_sync(FULL_MASK, warp_sum(g_sum), 0), cuda.shfl_sync(FULL_MASK, warp_sum(gx_sum), 0)
        phase = np.uint32(1 - phase)
        next_c = next_channels[phase]
        if rank == 0 and t == 0:
            dbias[c] = g_sum
            dweight[c] = gx_sum / root

        # -- write dx, load the next channel --
        g_mean, slope = g_sum / num_values, gx_sum / num_values / (root * root)
        for v in range(num_resident + t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            load(dy, image * channels + c, WIDTH * i, dy_reg)
            load(x, image * channels + c, WIDTH * i, x_reg)
            apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
            for e in range(WIDTH):
                x_reg[e] = scale * (dy_reg[e] - g_mean - x_reg[e] * slope)
            store(dx, image * channels + c, WIDTH * i, x_reg)
        for v in range(t, num_resident, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            plane = image * channels + c
            load_shared(smem, WIDTH * v, dy_reg)
            load_shared(smem, WIDTH * (capacity + v), x_reg)
            apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
            for e in range(WIDTH):
                x_reg[e] = scale * (dy_reg[e] - g_mean - x_reg[e] * slope)
            store(dx, plane, WIDTH * i, x_reg)
            if next_c < channels:
                copy_async(smem, WIDTH * v, dy, image * channels + next_c, WIDTH * i)
                copy_async(smem, WIDTH * (capacity + v), x, image * channels + next_c, WIDTH * i)
        ptx.cp_async_commit()
        c = next_c


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Return resident clusters, blocks per cluster, threads per block, and vectors of each array in shared memory.

    Clusters have the smallest size for which two blocks fit into an SM and all SMs have two blocks.
    """
    vector_bytes = 2 * itemsize * width  # bytes of both arrays
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in CLUSTER_SIZES:
        vectors = -(-problem.values // (width * blocks))
        if vectors * vector_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    capacity = min(vectors, MAX_BYTES // vector_bytes)
    blocks_per_sm = max(1, min(2 * HALF_BYTES // (capacity * vector_bytes), MAX_BLOCKS_PER_SM))
    max_warps = MAX_WARPS // 2 if blocks_per_sm > 1 else MAX_WARPS
    warps = max(1, min(max_warps, capacity // (MIN_COPIES * WARP)))
    return min(problem.C, blocks_per_sm * (sms // blocks)), blocks, WARP * warps, capacity


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_planes(dy, x, dx)
    width = width_up_to_four(dy, x, dx)
    clusters, blocks, threads, capacity = geometry(problem, format.itemsize, width)
    sizes = np.uint32(problem.N), np.uint32(capacity), np.float32(problem.values)
    numbers = *sizes, np.float32(problem.eps), problem.relu
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, workspace.counters(1), *numbers
    kernel = specialise_vectors(overlapped, format.dtype, width, bounds=threads, cluster=blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * clusters, threads, arguments, 2 * capacity * width * format.itemsize)]
