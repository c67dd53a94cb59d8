"""A channel of x and of the masked gradients stays on the chip: dy, x and y are read from memory once.

As in `norm/batch_backward/s07_overlapped`, clusters go from channel to channel, the copies of dy and x for the next one
begin where this one has been used, and L2 keeps what has no room. A thread that sums takes its values of y directly
from memory, masks dy, writes it as the gradient of the residual, and leaves it where dy was.

Costs, in passes over memory, each of them all values read or written once:

    5       one_read: dy, x and y read, dx and dresidual written
    5       passes in all

Limited by memory.

Parts: `warp_sum` of `labkit.parts.sums`; `copy_async`, `load`, `load_shared`, `store`, `store_shared` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.norm.problem import planes_of
from labkit.norm.residual_backward import TAKES
from labkit.parts.sums import warp_sum
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store, store_shared

CLUSTER = 8  # blocks that share a channel
SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours that a thread takes at once
ELEMENT = np.float32  # what images hold
LEAST = 4  # copies of a thread from each array
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
MOST_BYTES = 222 * 1024  # of the dynamic shared memory of a block; 4 KB are left for what warps tell one another
HALF_BYTES = 108 * 1024  # so that two blocks fit into an SM
MOST_IN_SM = 4  # blocks
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def masked(gradient, above, relu):
    """Leaves of the gradients what ReLU let through, which is above zero, or NaN."""
    for e in range(WIDTH):
        if relu and above[e] <= np.float32(0):
            gradient[e] = np.float32(0)


@cuda.jit(cluster=CLUSTER)
def one_read(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, taken, images, room, values, eps, relu):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)  # `room` vectors of dy, and as many of x
    gradient = cuda.local.array(WIDTH, np.float32)
    own = cuda.local.array(WIDTH, np.float32)
    above = cuda.local.array(WIDTH, np.float32)
    parts = cuda.shared.array((2, 2, CLUSTER, MOST_WARPS), np.float32)
    following = cuda.shared.array(2, np.uint32)  # the next channel
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    lane, warps = np.uint32(t % WARP), np.uint32(threads // WARP)
    channels = np.uint32(weight.shape[0])
    takes = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # of all clusters: each finds none left once
    vectors = np.uint32(x.shape[1] // WIDTH)  # of a plane
    share = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)  # of a block
    offset = min(rank * share, images * vectors)
    count = np.uint32(min(offset + share, images * vectors) - offset)
    held = min(count, room)

    ptx.cluster_sync()
    if rank == 0 and t == 0:
        first = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        for block in range(CLUSTER):
            ptx.cluster_store(following, 0, block, first)
    ptx.cluster_sync()
    c = following[0]
    if c < channels:
        for v in range(t, held, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            copy_async(kept, WIDTH * v, dy, image * channels + c, WIDTH * i)
            copy_async(kept, WIDTH * (room + v), x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()

    turn = np.uint32(0)
    while c < channels:
        after = np.uint32(0)
        if rank == 0 and t == 0:
            after = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        centre, root = mean[c], sqrt(variance[c] + eps)
        scale = weight[c] / root
        total = products = np.float32(0)
        ptx.cp_async_wait(0)
        for v in range(t, held, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            load(y, image * channels + c, WIDTH * i, above)
            load_shared(kept, WIDTH * v, gradient)
            load_shared(kept, WIDTH * (room + v), own)
            masked(gradient, above, relu)
            store_shared(kept, WIDTH * v, gradient)
            store(dresidual, image * channels + c, WIDTH * i, gradient)
            for e in range(WIDTH):
                total += gradient[e]
                products += gradient[e] * (own[e] - centre)
        for v in range(held + t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            load(dy, image * channels + c, WIDTH * i, gradient)
            load(x, image * channels + c, WIDTH * i, own)
            load(y, image * channels + c, WIDTH * i, above)
            masked(gradient, above, relu)
            store(dresidual, image * channels + c, WIDTH * i, gradient)
            for e in range(WIDTH):
                total += gradient[e]
                products += gradient[e] * (own[e] - centre)
        total, products = cuda.shfl_sync(ALL, warp_sum(total), 0), cuda.shfl_sync(ALL, warp_sum(products), 0)
        if lane < CLUSTER:
            ptx.cluster_store(parts, (turn, 0, rank, t // WARP), lane, total)
            ptx.cluster_store(parts, (turn, 1, rank, t // WARP), lane, products)
        if rank == 0 and t == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(following, 1 - turn, block, after)
        ptx.cluster_sync()

        total = products = np.float32(0)
        if lane < warps:
            for block in range(CLUSTER):
                total += parts[turn, 0, block, lane]
                products += parts[turn, 1, block, lane]
        total, products = cuda.shfl_sync(ALL, warp_sum(total), 0), cuda.shfl_sync(ALL, warp_sum(products), 0)
        turn = np.uint32(1 - turn)
        after = following[turn]
        if rank == 0 and t == 0:
            dbias[c] = total
            dweight[c] = products / root

        level, slope = total / values, products / values / (root * root)
        for v in range(held + t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            load(dresidual, image * channels + c, WIDTH * i, gradient)
            load(x, image * channels + c, WIDTH * i, own)
            for e in range(WIDTH):
                own[e] = scale * (gradient[e] - level - (own[e] - centre) * slope)
            store(dx, image * channels + c, WIDTH * i, own)
        for v in range(t, held, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            plane = image * channels + c
            load_shared(kept, WIDTH * v, gradient)
            load_shared(kept, WIDTH * (room + v), own)
            for e in range(WIDTH):
                own[e] = scale * (gradient[e] - level - (own[e] - centre) * slope)
            store(dx, plane, WIDTH * i, own)
            if after < channels:
                copy_async(kept, WIDTH * v, dy, image * channels + after, WIDTH * i)
                copy_async(kept, WIDTH * (room + v), x, image * channels + after, WIDTH * i)
        ptx.cp_async_commit()
        c = after


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Clusters, blocks of each, threads of a block, and vectors that a block keeps of each array.

    Clusters are as small as leaves two blocks in each SM, by their shared memory, and of all channels; there are as
    many as run at once.
    """
    vector_bytes = 2 * itemsize * width  # of both arrays
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in SIZES:
        vectors = -(-problem.values // (width * blocks))
        if vectors * vector_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    room = min(vectors, MOST_BYTES // vector_bytes)
    in_sm = max(1, min(2 * HALF_BYTES // (room * vector_bytes), MOST_IN_SM))
    most = MOST_WARPS // 2 if in_sm > 1 else MOST_WARPS
    warps = max(1, min(most, room // (LEAST * WARP)))
    return min(problem.C, in_sm * (sms // blocks)), blocks, WARP * warps, room


def launches(dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias, problem, workspace, format=FP32):
    """dx, dresidual, dweight and dbias, of images in NCHW."""
    arrays = dy, x, y, weight, mean, variance, dx, dresidual, dweight, dbias
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    images = [reshaped(X, *planes_of(X.shape)) for X in (dy, x, y, dx, dresidual)]
    at_once = width_up_to_four(*images)
    clusters, blocks, threads, room = geometry(problem, format.itemsize, at_once)
    numbers = np.uint32(problem.N), np.uint32(room), np.float32(problem.values), np.float32(problem.eps), problem.relu
    arguments = *images[:3], weight, mean, variance, *images[3:], dweight, dbias, workspace.counters(1), *numbers
    kernel = specialise_vectors(one_read, format.dtype, at_once, threads, blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * clusters, threads, arguments, 2 * room * at_once * format.itemsize)]
