"""A channel of dy and of x stays on the chip between its two uses: both are read from memory once.

Of 64 images of 56 x 56 pixels a channel of both has 1.6 MB. A cluster of 8 blocks, which run side by side, keeps 0.2 MB
of it in each block, which is nearly all of the shared memory of an SM. All of a block's copies are under way at once;
each thread then sums what it has copied itself. Each warp writes what it found into the shared memory of all blocks of
its cluster; behind one barrier, every warp adds up what all have found, in the same order. The other barrier, at the
beginning, makes sure that all blocks are there; the copies hide it. Channels that are small take fewer blocks.

Costs, in passes over memory, each of them all values read or written once:

    3       one_read: dy and x read, dx written
    3       passes in all

Limited by the time in which a block waits: for its values, for its cluster, and for eight places where the next cluster
can begin. `s08_overlapped` reads the next channel while it writes this one.

Parts: `warp_sum` of `labkit.parts.sums`; `copy_async`, `load_shared`, `store` of `labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import reshaped
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch_backward import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load_shared, store

FORMATS = FP32, BF16
BENCHED = (64, 256, 56, 56), (32, 512, 7, 7)
CLUSTER = 8  # blocks that share a channel
SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours that a thread takes at once
ELEMENT = np.float32  # what images hold
LEAST = 4  # copies of a thread from each array
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
MOST_BYTES = 222 * 1024  # of the dynamic shared memory of a block; 4 KB are left for what warps tell one another
HALF_BYTES = 108 * 1024  # so that two blocks fit into an SM
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def masked(gradient, own, centre, scale, shift, relu):
    """Leaves of the gradients what ReLU lets through, and of the values how far they are from the mean."""
    for e in range(WIDTH):
        own[e] -= centre
        if relu and own[e] * scale + shift <= np.float32(0):  # a NaN is not below zero
            gradient[e] = np.float32(0)


@cuda.jit(cluster=CLUSTER)
def one_read(dy, x, weight, bias, mean, variance, dx, dweight, dbias, images, room, values, eps, relu):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)  # `room` vectors of dy, and as many of x
    gradient = cuda.local.array(WIDTH, np.float32)
    own = cuda.local.array(WIDTH, np.float32)
    parts = cuda.shared.array((2, CLUSTER, MOST_WARPS), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    lane, warps = np.uint32(t % WARP), np.uint32(threads // WARP)
    c, channels = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    vectors = np.uint32(x.shape[1] // WIDTH)  # of a plane
    share = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)  # of a block
    offset = min(rank * share, images * vectors)
    count = np.uint32(min(offset + share, images * vectors) - offset)

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        copy_async(kept, WIDTH * v, dy, image * channels + c, WIDTH * i)
        copy_async(kept, WIDTH * (room + v), x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()
    centre, shift, root = mean[c], bias[c], sqrt(variance[c] + eps)
    scale = weight[c] / root
    ptx.cluster_sync()
    ptx.cp_async_wait(0)

    total = products = np.float32(0)
    for v in range(t, count, threads):
        load_shared(kept, WIDTH * v, gradient)
        load_shared(kept, WIDTH * (room + v), own)
        masked(gradient, own, centre, scale, shift, relu)
        for e in range(WIDTH):
            total += gradient[e]
            products += gradient[e] * own[e]
    total, products = cuda.shfl_sync(ALL, warp_sum(total), 0), cuda.shfl_sync(ALL, warp_sum(products), 0)
    if lane < CLUSTER:
        ptx.cluster_store(parts, (0, rank, t // WARP), lane, total)
        ptx.cluster_store(parts, (1, rank, t // WARP), lane, products)
    ptx.cluster_sync()

    total = products = np.float32(0)
    if lane < warps:
        for block in range(CLUSTER):
            total += parts[0, block, lane]
            products += parts[1, block, lane]
    total, products = cuda.shfl_sync(ALL, warp_sum(total), 0), cuda.shfl_sync(ALL, warp_sum(products), 0)
    if rank == 0 and t == 0:
        dbias[c] = total
        dweight[c] = products / root

    level, slope = total / values, products / values / (root * root)
    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        load_shared(kept, WIDTH * v, gradient)
        load_shared(kept, WIDTH * (room + v), own)
        masked(gradient, own, centre, scale, shift, relu)
        for e in range(WIDTH):
            own[e] = scale * (gradient[e] - level - own[e] * slope)
        store(dx, image * channels + c, WIDTH * i, own)


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Blocks of a cluster, threads of a block, and vectors that a block keeps of each array.

    Clusters are as small as leaves two blocks in each SM, by their shared memory, and of all channels.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in SIZES:
        room = -(-problem.values // (width * blocks))
        kept_bytes = 2 * itemsize * width * room
        if kept_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if kept_bytes > MOST_BYTES:
        most = MOST_BYTES * CLUSTER // (2 * itemsize)
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {most} of both arrays")
    most = MOST_WARPS // 2 if kept_bytes <= HALF_BYTES else MOST_WARPS
    return blocks, WARP * max(1, min(most, room // (LEAST * WARP))), room


def launches(dy, x, weight, bias, mean, variance, dx, dweight, dbias, problem, format=FP32):
    """dx, dweight and dbias, of images in NCHW."""
    arrays = dy, x, weight, bias, mean, variance, dx, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    dy, x, dx = (reshaped(X, *planes_of(X.shape)) for X in (dy, x, dx))
    at_once = width_up_to_four(dy, x, dx)
    blocks, threads, room = geometry(problem, format.itemsize, at_once)
    numbers = np.uint32(problem.N), np.uint32(room), np.float32(problem.values), np.float32(problem.eps), problem.relu
    arguments = dy, x, weight, bias, mean, variance, dx, dweight, dbias, *numbers
    kernel = specialise_vectors(one_read, format.dtype, at_once, threads, blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * problem.C, threads, arguments, 2 * room * at_once * format.itemsize)]
