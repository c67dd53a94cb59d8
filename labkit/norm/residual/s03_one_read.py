"""A channel of x stays in shared memory between its two uses, and a used value makes room for the next channel.

All clusters are resident, and each claims one channel after the other from a counter. A thread sums
the values that it copied itself; the blocks of a cluster exchange their moments through distributed shared memory. The
residual is loaded directly when it is added. A thread that has written y immediately copies the next channel's values
into the same slots: loads and stores overlap, as in a copy.

Costs in passes over memory, each of which reads or writes all values once:

    3       one_read: x and the residual read, y written
    3       passes in all

Limited by memory.

Parts: `merge_moments`, `block_moments` of `labkit.parts.moments`; `copy_async`, `load`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.images import as_planes
from labkit.norm.residual import SUPPORTED
from labkit.parts.moments import MOMENT_FIELDS, block_moments, merge_moments
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store

CLUSTER = 8  # blocks per channel
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours per vector
ELEMENT = np.float32  # element type of images
MIN_COPIES = 4  # per thread
MAX_BLOCKS_PER_SM = 4
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
MAX_BYTES = 226 * 1024  # of dynamic shared memory per block; 1 KB remains for the exchange between blocks
HALF_BYTES = 112 * 1024  # two such blocks fit into an SM


@cuda.jit(cluster=CLUSTER)
def one_read(
    x, residual, weight, bias, y, mean, variance, running_mean, running_variance, counter, images, eps, momentum, relu
):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)
    x_reg = cuda.local.array(WIDTH, np.float32)
    res_reg = cuda.local.array(WIDTH, np.float32)
    warp_moments = cuda.shared.array((MOMENT_FIELDS, MAX_WARPS), np.float32)
    moments = cuda.shared.array((2, MOMENT_FIELDS, CLUSTER), np.float32)
    next_channels = cuda.shared.array(2, np.uint32)  # two buffers, used alternately by channels
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    channels = np.uint32(weight.shape[0])
    counter_wrap = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # a wasted claim ends each cluster, the last at 0
    vectors = np.uint32(x.shape[1] // WIDTH)  # per plane
    vectors_per_block = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)
    offset = min(rank * vectors_per_block, images * vectors)
    count = np.uint32(min(offset + vectors_per_block, images * vectors) - offset)

    # -- claim the first channel and load it --
    ptx.cluster_sync()
    if rank == 0 and t == 0:
        first_c = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        for block in range(CLUSTER):
            ptx.cluster_store(next_channels, 0, block, first_c)
    ptx.cluster_sync()
    c = next_channels[0]
    if c < channels:
        for v in range(t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            copy_async(smem, WIDTH * v, x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()

    phase = np.uint32(0)
    while c < channels:
        # -- claim the next channel --
        next_c = np.uint32(0)
        if rank == 0 and t == 0:
            next_c = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        # -- sum the values of this channel --
        ptx.cp_async_wait(0)
        num_values = first = shifted_sum = shifted_squares = np.float32(0)
        for v in range(t, count, threads):
            load_shared(smem, WIDTH * v, x_reg)
            first = x_reg[0] if num_values == np.float32(0) else first
            num_values += np.float32(WIDTH)
            for e in range(WIDTH):
                shifted_sum += x_reg[e] - first
                shifted_squares += (x_reg[e] - first) * (x_reg[e] - first)
        mean_low = shifted_sum / max(num_values, np.float32(1))
        num_values, average, mean_low, m2 = block_moments(
            num_values, first, mean_low, shifted_squares - shifted_sum * mean_low, warp_moments
        )
        # -- exchange within the cluster --
        if t == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(moments, (phase, 0, rank), block, num_values)
                ptx.cluster_store(moments, (phase, 1, rank), block, average)
                ptx.cluster_store(moments, (phase, 2, rank), block, mean_low)
                ptx.cluster_store(moments, (phase, 3, rank), block, m2)
                if rank == 0:
                    ptx.cluster_store(next_channels, 1 - phase, block, next_c)
        ptx.cluster_sync()

        # -- statistics of this channel --
        num_values, average, mean_low, m2 = (
            moments[phase, 0, 0],
            moments[phase, 1, 0],
            moments[phase, 2, 0],
            moments[phase, 3, 0],
        )
        for block in range(1, CLUSTER):
            n, m = moments[phase, 0, block], moments[phase, 1, block]  # count, mean
            r, s = moments[phase, 2, block], moments[phase, 3, block]  # the mean's rounding error, m2
            num_values, average, mean_low, m2 = merge_moments(num_values, average, mean_low, m2, n, m, r, s)
        centre, scale, shift = average + mean_low, weight[c] / sqrt(m2 / num_values + eps), bias[c]
        phase = np.uint32(1 - phase)
        next_c = next_channels[phase]
        if rank == 0 and t == 0:
            mean[c] = centre
            variance[c] = m2 / num_values  # m2: sum of squared deviations from the mean
            keep = np.float32(1) - momentum
            running_mean[c] = keep * running_mean[c] + momentum * centre
            running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))

        # -- write y, load the next channel --
        for v in range(t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            plane = image * channels + c
            load(residual, plane, WIDTH * i, res_reg)
            load_shared(smem, WIDTH * v, x_reg)
            for e in range(WIDTH):
                value = (x_reg[e] - centre) * scale + shift + res_reg[e]
                x_reg[e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
            store(y, plane, WIDTH * i, x_reg)
            if next_c < channels:
                copy_async(smem, WIDTH * v, x, image * channels + next_c, WIDTH * i)
        ptx.cp_async_commit()
        c = next_c


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Return resident clusters, blocks per cluster, threads per block, and shared bytes per block.

    Clusters have the smallest size for which two blocks fit into an SM and all SMs have two blocks.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in CLUSTER_SIZES:
        smem_bytes = 4 * itemsize * -(-problem.values // (4 * blocks))
        if smem_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if smem_bytes > MAX_BYTES:
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {MAX_BYTES * CLUSTER // itemsize}")
    blocks_per_sm = min(2 * HALF_BYTES // smem_bytes, MAX_BLOCKS_PER_SM) if smem_bytes <= HALF_BYTES else 1
    max_warps = MAX_WARPS // 2 if blocks_per_sm > 1 else MAX_WARPS
    warps = max(1, min(max_warps, smem_bytes // (itemsize * width) // (MIN_COPIES * WARP)))
    return min(problem.C, blocks_per_sm * (sms // blocks)), blocks, WARP * warps, smem_bytes


def launches(
    x, residual, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32
):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, residual, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, residual, y = as_planes(x, residual, y)
    width = width_up_to_four(x, residual, y)
    clusters, blocks, threads, smem_bytes = geometry(problem, format.itemsize, width)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    others = weight, bias, y, mean, variance, running_mean, running_variance
    arguments = x, residual, *others, workspace.counters(1), *numbers
    kernel = specialise_vectors(one_read, format.dtype, width, bounds=threads, cluster=blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * clusters, threads, arguments, smem_bytes)]
