"""A channel stays in shared memory between its two uses: it is read from memory once.

A channel of 64 images of 56 x 56 pixels has 0.8 MB, too much for the 227 KB of shared memory of an SM. A cluster of 8
blocks on neighbouring SMs keeps 0.1 MB of it per block. All copies of a block are in flight at once. Each thread sums
the values that it copied itself, without a barrier. The blocks exchange their moments through distributed shared
memory, with one cluster barrier. Another cluster barrier, at the start, ensures that all blocks run; the copies hide
it. Small channels use smaller clusters.

Two blocks fit into an SM: one can wait for memory, or for its cluster, while the other one stores.

Costs in passes over memory, each of which reads or writes all values once:

    2       one_read: read, written
    2       passes in all

Limited by waiting: for the first values, for the cluster, and for eight free slots in which the next cluster can start.
`s11_overlapped` loads the next channel while it stores this one.

Parts: `merge_moments`, `block_moments` of `labkit.parts.moments`; `copy_async`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.moments import MOMENT_FIELDS, block_moments, merge_moments
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load_shared, store

FORMATS = FP32, BF16, FP16
CLUSTER = 8  # blocks per channel
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours per vector
ELEMENT = np.float32  # element type of images
MIN_COPIES = 4  # per thread
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
MAX_BYTES = 226 * 1024  # of dynamic shared memory per block; 1 KB remains for the exchange between blocks
HALF_BYTES = 112 * 1024  # two such blocks fit into an SM


@cuda.jit(cluster=CLUSTER)
def one_read(x, weight, bias, y, mean, variance, running_mean, running_variance, images, eps, momentum, relu):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)
    x_reg = cuda.local.array(WIDTH, np.float32)
    warp_moments = cuda.shared.array((MOMENT_FIELDS, MAX_WARPS), np.float32)
    moments = cuda.shared.array((MOMENT_FIELDS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    c, channels = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    vectors = np.uint32(x.shape[1] // WIDTH)  # per plane
    vectors_per_block = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)
    offset = min(rank * vectors_per_block, images * vectors)
    count = np.uint32(min(offset + vectors_per_block, images * vectors) - offset)

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        copy_async(smem, WIDTH * v, x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()
    ptx.cluster_sync()
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
    if t == 0:
        for block in range(CLUSTER):
            ptx.cluster_store(moments, (0, rank), block, num_values)
            ptx.cluster_store(moments, (1, rank), block, average)
            ptx.cluster_store(moments, (2, rank), block, mean_low)
            ptx.cluster_store(moments, (3, rank), block, m2)
    ptx.cluster_sync()

    num_values, average, mean_low, m2 = moments[0, 0], moments[1, 0], moments[2, 0], moments[3, 0]
    for block in range(1, CLUSTER):  # n, m, r, s: count, mean, its rounding error, m2
        n, m, r, s = moments[0, block], moments[1, block], moments[2, block], moments[3, block]
        num_values, average, mean_low, m2 = merge_moments(num_values, average, mean_low, m2, n, m, r, s)
    centre, scale, shift = average + mean_low, weight[c] / sqrt(m2 / num_values + eps), bias[c]
    if rank == 0 and t == 0:
        mean[c] = centre
        variance[c] = m2 / num_values  # m2: sum of squared deviations from the mean
        keep = np.float32(1) - momentum
        running_mean[c] = keep * running_mean[c] + momentum * centre
        running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        plane = image * channels + c
        load_shared(smem, WIDTH * v, x_reg)
        for e in range(WIDTH):
            value = (x_reg[e] - centre) * scale + shift
            x_reg[e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        store(y, plane, WIDTH * i, x_reg)


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and shared bytes per block.

    Clusters have the smallest size for which two blocks fit into an SM and all SMs have two blocks.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in CLUSTER_SIZES:
        smem_bytes = 4 * itemsize * -(-problem.values // (4 * blocks))
        if smem_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if smem_bytes > MAX_BYTES:
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {MAX_BYTES * CLUSTER // itemsize}")
    max_warps = MAX_WARPS // 2 if smem_bytes <= HALF_BYTES else MAX_WARPS
    warps = max(1, min(max_warps, smem_bytes // (itemsize * width) // (MIN_COPIES * WARP)))
    return blocks, WARP * warps, smem_bytes


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    x, y = as_planes(x, y)
    width = width_up_to_four(x, y)
    blocks, threads, smem_bytes = geometry(problem, format.itemsize, width)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    kernel = specialise_vectors(one_read, format.dtype, width, bounds=threads, cluster=blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * problem.C, threads, arguments, smem_bytes)]
