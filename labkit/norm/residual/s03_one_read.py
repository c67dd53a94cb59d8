"""A channel of x stays on the chip between its two uses, and each value that was written makes room for the next one.

As many clusters are launched as may run at once, and each takes channel after channel, the next that nobody has taken.
A thread sums what it has copied itself; the blocks of a cluster tell one another what they found, by writing it into
one another's shared memory. The residual is read directly, when it is added. A thread that has written what became of a
value begins at once to copy the next channel's into its place: so memory is read and written at the same time, as in a
copy.

Costs, in passes over memory, each of them all values read or written once:

    3       one_read: x and the residual read, y written
    3       passes in all

Limited by memory.

Parts: `merge_moments`, `block_moments` of `labkit.parts.moments`; `copy_async`, `load`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import reshaped
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.problem import planes_of
from labkit.norm.residual import TAKES
from labkit.parts.moments import ROWS, block_moments, merge_moments
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load, load_shared, store

CLUSTER = 8  # blocks that share a channel
SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours that a thread takes at once
ELEMENT = np.float32  # what images hold
LEAST = 4  # copies of a thread
MOST_IN_SM = 4  # blocks
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
MOST_BYTES = 226 * 1024  # of the dynamic shared memory of a block; 1 KB is left for what blocks tell one another
HALF_BYTES = 112 * 1024  # so that two blocks fit into an SM


@cuda.jit(cluster=CLUSTER)
def one_read(
    x, residual, weight, bias, y, mean, variance, running_mean, running_variance, taken, images, eps, factor, relu
):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)
    own = cuda.local.array(WIDTH, np.float32)
    beside = cuda.local.array(WIDTH, np.float32)
    of_warps = cuda.shared.array((ROWS, MOST_WARPS), np.float32)
    parts = cuda.shared.array((2, ROWS, CLUSTER), np.float32)
    following = cuda.shared.array(2, np.uint32)  # the next channel
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    channels = np.uint32(weight.shape[0])
    takes = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # of all clusters: each finds none left once
    vectors = np.uint32(x.shape[1] // WIDTH)  # of a plane
    share = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)  # of a block
    offset = min(rank * share, images * vectors)
    count = np.uint32(min(offset + share, images * vectors) - offset)

    ptx.cluster_sync()
    if rank == 0 and t == 0:
        begun = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        for block in range(CLUSTER):
            ptx.cluster_store(following, 0, block, begun)
    ptx.cluster_sync()
    c = following[0]
    if c < channels:
        for v in range(t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            copy_async(kept, WIDTH * v, x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()

    turn = np.uint32(0)
    while c < channels:
        after = np.uint32(0)
        if rank == 0 and t == 0:
            after = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        ptx.cp_async_wait(0)
        values = first = total = squares = np.float32(0)
        for v in range(t, count, threads):
            load_shared(kept, WIDTH * v, own)
            first = own[0] if values == np.float32(0) else first
            values += np.float32(WIDTH)
            for e in range(WIDTH):
                total += own[e] - first
                squares += (own[e] - first) * (own[e] - first)
        rest = total / max(values, np.float32(1))
        values, average, rest, squares = block_moments(values, first, rest, squares - total * rest, of_warps)
        if t == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(parts, (turn, 0, rank), block, values)
                ptx.cluster_store(parts, (turn, 1, rank), block, average)
                ptx.cluster_store(parts, (turn, 2, rank), block, rest)
                ptx.cluster_store(parts, (turn, 3, rank), block, squares)
                if rank == 0:
                    ptx.cluster_store(following, 1 - turn, block, after)
        ptx.cluster_sync()

        values, average, rest, squares = parts[turn, 0, 0], parts[turn, 1, 0], parts[turn, 2, 0], parts[turn, 3, 0]
        for block in range(1, CLUSTER):
            n, m = parts[turn, 0, block], parts[turn, 1, block]
            r, s = parts[turn, 2, block], parts[turn, 3, block]
            values, average, rest, squares = merge_moments(values, average, rest, squares, n, m, r, s)
        centre, scale, shift = average + rest, weight[c] / sqrt(squares / values + eps), bias[c]
        turn = np.uint32(1 - turn)
        after = following[turn]
        if rank == 0 and t == 0:
            mean[c] = centre
            variance[c] = squares / values
            keep = np.float32(1) - factor
            running_mean[c] = keep * running_mean[c] + factor * centre
            running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))

        for v in range(t, count, threads):
            image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
            plane = image * channels + c
            load(residual, plane, WIDTH * i, beside)
            load_shared(kept, WIDTH * v, own)
            for e in range(WIDTH):
                value = (own[e] - centre) * scale + shift + beside[e]
                own[e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
            store(y, plane, WIDTH * i, own)
            if after < channels:
                copy_async(kept, WIDTH * v, x, image * channels + after, WIDTH * i)
        ptx.cp_async_commit()
        c = after


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int]:
    """Clusters, blocks of each, threads of a block, and bytes of a channel that a block keeps.

    Clusters are as small as leaves two blocks in each SM, by their shared memory, and of all channels; there are as
    many as may run at once.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in SIZES:
        kept_bytes = 4 * itemsize * -(-problem.values // (4 * blocks))
        if kept_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if kept_bytes > MOST_BYTES:
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {MOST_BYTES * CLUSTER // itemsize}")
    in_sm = min(2 * HALF_BYTES // kept_bytes, MOST_IN_SM) if kept_bytes <= HALF_BYTES else 1
    most = MOST_WARPS // 2 if in_sm > 1 else MOST_WARPS
    warps = max(1, min(most, kept_bytes // (itemsize * width) // (LEAST * WARP)))
    return min(problem.C, in_sm * (sms // blocks)), blocks, WARP * warps, kept_bytes


def launches(
    x, residual, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32
):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, residual, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, residual, y = (reshaped(X, *planes_of(X.shape)) for X in (x, residual, y))
    at_once = width_up_to_four(x, residual, y)
    clusters, blocks, threads, kept_bytes = geometry(problem, format.itemsize, at_once)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    others = weight, bias, y, mean, variance, running_mean, running_variance
    arguments = x, residual, *others, workspace.counters(1), *numbers
    kernel = specialise_vectors(one_read, format.dtype, at_once, threads, blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * clusters, threads, arguments, kept_bytes)]
