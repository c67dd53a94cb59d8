"""A channel of dy and of x stays in shared memory between its two uses: both are read from memory once.

For 64 images of 56 x 56 pixels a channel of both has 1.6 MB. A cluster of 8 blocks on neighbouring SMs keeps 0.2 MB per
block, nearly all of the shared memory of an SM. All copies of a block are in flight at once, and each thread sums the
values that it copied itself. Each warp stores its sums to the shared memory of all blocks of the cluster. After one
barrier every warp adds all of them, in the same order. Another cluster barrier, at the start, ensures that all blocks
run; the copies hide it. Small channels use smaller clusters.

Costs in passes over memory, each of which reads or writes all values once:

    3       one_read: dy and x read, dx written
    3       passes in all

Limited by waiting: for values, for the cluster, and for eight free slots in which the next cluster can start.
`s08_overlapped` loads the next channel while it stores this one.

Parts: `warp_sum` of `labkit.parts.sums`; `copy_async`, `load_shared`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch_backward import SUPPORTED
from labkit.norm.images import as_planes
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load_shared, store

FORMATS = FP32, BF16, FP16
BENCHED = (64, 256, 56, 56), (32, 512, 7, 7), (8, 2048, 7, 7)  # timed sizes
CLUSTER = 8  # blocks per channel
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours per vector
ELEMENT = np.float32  # element type of images
MIN_COPIES = 4  # per thread and array
WARP, MAX_WARPS = 32, 32  # threads per warp, and warps per block
MAX_BYTES = 222 * 1024  # of dynamic shared memory per block; 4 KB remain for the exchange between warps
HALF_BYTES = 108 * 1024  # two such blocks fit into an SM
FULL_MASK = 0xFFFFFFFF


@cuda.jit(device=True)
def apply_mask(dy_reg, x_reg, centre, scale, shift, relu):
    """Set gradients that did not pass ReLU to zero, and subtract the mean from the values; both in place."""
    for e in range(WIDTH):
        x_reg[e] -= centre
        if relu and x_reg[e] * scale + shift <= np.float32(0):  # a NaN is not below zero
            dy_reg[e] = np.float32(0)


@cuda.jit(cluster=CLUSTER)
def one_read(dy, x, weight, bias, mean, variance, dx, dweight, dbias, images, capacity, num_values, eps, relu):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)  # `capacity` vectors of dy, then the same of x
    dy_reg = cuda.local.array(WIDTH, np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    warp_partials = cuda.shared.array((2, CLUSTER, MAX_WARPS), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    lane, warps = np.uint32(t % WARP), np.uint32(threads // WARP)
    c, channels = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    vectors = np.uint32(x.shape[1] // WIDTH)  # per plane
    vectors_per_block = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)
    offset = min(rank * vectors_per_block, images * vectors)
    count = np.uint32(min(offset + vectors_per_block, images * vectors) - offset)

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        copy_async(smem, WIDTH * v, dy, image * channels + c, WIDTH * i)
        copy_async(smem, WIDTH * (capacity + v), x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()
    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    ptx.cluster_sync()
    ptx.cp_async_wait(0)

    g_sum = gx_sum = np.float32(0)
    for v in range(t, count, threads):
        load_shared(smem, WIDTH * v, dy_reg)
        load_shared(smem, WIDTH * (capacity + v), x_reg)
        apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
        for e in range(WIDTH):
            g_sum += dy_reg[e]
            gx_sum += dy_reg[e] * x_reg[e]
    g_sum, gx_sum = cuda.shfl_sync(FULL_MASK, warp_sum(g_sum), 0), cuda.shfl_sync(FULL_MASK, warp_sum(gx_sum), 0)
    if lane < CLUSTER:
        ptx.cluster_store(warp_partials, (0, rank, t // WARP), lane, g_sum)
        ptx.cluster_store(warp_partials, (1, rank, t // WARP), lane, gx_sum)
    ptx.cluster_sync()

    g_sum = gx_sum = np.float32(0)
    if lane < warps:
        for block in range(CLUSTER):
            g_sum += warp_partials[0, block, lane]
            gx_sum += warp_partials[1, block, lane]
    g_sum, gx_sum = cuda.shfl_sync(FULL_MASK, warp_sum(g_sum), 0), cuda.shfl_sync(FULL_MASK, warp_sum(gx_sum), 0)
    if rank == 0 and t == 0:
        dbias[c] = g_sum
        dweight[c] = gx_sum / root

    g_mean, slope = g_sum / num_values, gx_sum / num_values / (root * root)
    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        load_shared(smem, WIDTH * v, dy_reg)
        load_shared(smem, WIDTH * (capacity + v), x_reg)
        apply_mask(dy_reg, x_reg, centre, scale, shift, relu)
        for e in range(WIDTH):
            x_reg[e] = scale * (dy_reg[e] - g_mean - x_reg[e] * slope)
        store(dx, image * channels + c, WIDTH * i, x_reg)


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Return blocks per cluster, threads per block, and vectors of each array in a block's shared memory.

    Clusters have the smallest size for which two blocks fit into an SM and all SMs have two blocks.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in CLUSTER_SIZES:
        capacity = -(-problem.values // (width * blocks))
        smem_bytes = 2 * itemsize * width * capacity
        if smem_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if smem_bytes > MAX_BYTES:
        limit = MAX_BYTES * CLUSTER // (2 * itemsize)
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {limit} of both arrays")
    max_warps = MAX_WARPS // 2 if smem_bytes <= HALF_BYTES else MAX_WARPS
    return blocks, WARP * max(1, min(max_warps, capacity // (MIN_COPIES * WARP))), capacity


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """Return the launches for dx, dweight and dbias of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    dy, x, dx = as_planes(dy, x, dx)
    width = width_up_to_four(dy, x, dx)
    blocks, threads, capacity = geometry(problem, format.itemsize, width)
    sizes = np.uint32(problem.N), np.uint32(capacity), np.float32(problem.values)
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, *sizes, np.float32(problem.eps), problem.relu
    kernel = specialise_vectors(one_read, format.dtype, width, bounds=threads, cluster=blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * problem.C, threads, arguments, 2 * capacity * width * format.itemsize)]
