"""A channel stays on the chip between its two uses: it is read from memory once.

A channel of 64 images of 56 x 56 pixels has 0.8 MB, too much for the 227 KB of shared memory of an SM. A cluster of 8
blocks, which run side by side, keeps 0.1 MB of it in each block. All of a block's copies are under way at once; each
thread then sums what it has copied itself, so that nobody waits for others. The blocks tell one another what they found
by writing it into one another's shared memory, behind one barrier of the cluster. The other barrier, at the beginning,
makes sure that all of them are there; the copies hide it. Channels that are small take fewer blocks.

Two blocks fit into an SM: one can wait for memory, or for its cluster, while the other writes.

Costs, in passes over memory, each of them all values read or written once:

    2       one_read: read, written
    2       passes in all

Limited by the time in which a block waits: for its first values, for its cluster, and for eight places where the next
cluster can begin. `s11_overlapped` reads the next channel while it writes this one.

Parts: `merge_moments`, `block_moments` of `labkit.parts.moments`; `copy_async`, `load_shared`, `store` of
`labkit.parts.vectors`.
"""

from math import sqrt

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import reshaped
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import TAKES
from labkit.norm.problem import planes_of
from labkit.parts.moments import ROWS, block_moments, merge_moments
from labkit.parts.vector_widths import specialise_vectors, width_up_to_four
from labkit.parts.vectors import copy_async, load_shared, store

FORMATS = FP32, BF16
CLUSTER = 8  # blocks that share a channel
SIZES = 1, 2, 4, 8
WIDTH = 4  # neighbours that a thread takes at once
ELEMENT = np.float32  # what images hold
LEAST = 4  # copies of a thread
WARP, MOST_WARPS = 32, 32  # threads of a warp, and warps of a block
MOST_BYTES = 226 * 1024  # of the dynamic shared memory of a block; 1 KB is left for what blocks tell one another
HALF_BYTES = 112 * 1024  # so that two blocks fit into an SM


@cuda.jit(cluster=CLUSTER)
def one_read(x, weight, bias, y, mean, variance, running_mean, running_variance, images, eps, factor, relu):
    kept = cuda.shared.array(0, ELEMENT, alignment=16)
    own = cuda.local.array(WIDTH, np.float32)
    of_warps = cuda.shared.array((ROWS, MOST_WARPS), np.float32)
    parts = cuda.shared.array((ROWS, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    c, channels = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    vectors = np.uint32(x.shape[1] // WIDTH)  # of a plane
    share = np.uint32((images * vectors + CLUSTER - 1) // CLUSTER)  # of a block
    offset = min(rank * share, images * vectors)
    count = np.uint32(min(offset + share, images * vectors) - offset)

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        copy_async(kept, WIDTH * v, x, image * channels + c, WIDTH * i)
    ptx.cp_async_commit()
    ptx.cluster_sync()
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
            ptx.cluster_store(parts, (0, rank), block, values)
            ptx.cluster_store(parts, (1, rank), block, average)
            ptx.cluster_store(parts, (2, rank), block, rest)
            ptx.cluster_store(parts, (3, rank), block, squares)
    ptx.cluster_sync()

    values, average, rest, squares = parts[0, 0], parts[1, 0], parts[2, 0], parts[3, 0]
    for block in range(1, CLUSTER):
        n, m, r, s = parts[0, block], parts[1, block], parts[2, block], parts[3, block]
        values, average, rest, squares = merge_moments(values, average, rest, squares, n, m, r, s)
    centre, scale, shift = average + rest, weight[c] / sqrt(squares / values + eps), bias[c]
    if rank == 0 and t == 0:
        mean[c] = centre
        variance[c] = squares / values
        keep = np.float32(1) - factor
        running_mean[c] = keep * running_mean[c] + factor * centre
        running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))

    for v in range(t, count, threads):
        image, i = np.uint32((offset + v) // vectors), np.uint32((offset + v) % vectors)
        plane = image * channels + c
        load_shared(kept, WIDTH * v, own)
        for e in range(WIDTH):
            value = (own[e] - centre) * scale + shift
            own[e] = np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
        store(y, plane, WIDTH * i, own)


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int]:
    """Blocks of a cluster, threads of a block, and bytes of a channel that a block keeps.

    Clusters are as small as leaves two blocks in each SM, by their shared memory, and of all channels.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in SIZES:
        kept_bytes = 4 * itemsize * -(-problem.values // (4 * blocks))
        if kept_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if kept_bytes > MOST_BYTES:
        raise TooLarge(f"a channel has {problem.values} values, and a cluster keeps {MOST_BYTES * CLUSTER // itemsize}")
    most = MOST_WARPS // 2 if kept_bytes <= HALF_BYTES else MOST_WARPS
    warps = max(1, min(most, kept_bytes // (itemsize * width) // (LEAST * WARP)))
    return blocks, WARP * warps, kept_bytes


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    x, y = reshaped(x, *planes_of(x.shape)), reshaped(y, *planes_of(y.shape))
    at_once = width_up_to_four(x, y)
    blocks, threads, kept_bytes = geometry(problem, format.itemsize, at_once)
    numbers = np.uint32(problem.N), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    arguments = x, weight, bias, y, mean, variance, running_mean, running_variance, *numbers
    kernel = specialise_vectors(one_read, format.dtype, at_once, threads, blocks, CLUSTER=blocks)
    return [Launch(kernel, blocks * problem.C, threads, arguments, kept_bytes)]
