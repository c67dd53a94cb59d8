"""Persistent clusters: a warp stores its piece, and loads the next channel's piece into the same buffer.

All clusters are resident, and each claims one channel after the other from a counter: the number of
clusters depends on which SMs are neighbours, and differs between H100s. A warp owns a piece of a channel, about 12 KB,
which no other warp accesses. TMA loads the piece, the warp sums it as soon as it arrives, normalises it in place, and
TMA stores it. Then the warp requests its piece of the next channel. Loads and stores overlap, as in a copy, and no
thread computes an address.

Between the two uses all warps of a cluster exchange their moments. The exchange buffer is double, so that one barrier
per channel suffices. Two blocks fit into an SM; while one waits for its cluster, the other uses the memory.

Costs in passes over memory, each of which reads or writes all values once:

    2       overlapped: read, written
    2       passes in all

Limited by memory.

Parts: `merge_moments`, `warp_moments` of `labkit.parts.moments`.
"""

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import SUPPORTED
from labkit.norm.pieces import normalise_piece, piece_moments, tma_rows
from labkit.parts.moments import MOMENT_FIELDS, merge_moments, warp_moments
from labkit.parts.vector_widths import element_constants

FORMATS = FP32, BF16, FP16
EXAMPLES = (  # tested sizes: N, C, H, W, relu, layout, momentum, batches, eps, hard
    (1, 1, 4, 8),
    (3, 5, 8, 8, False, "NCHW", None, 3, 0.1),
    (70, 2, 16, 10),
    (6, 3, 16, 20, True, "NCHW", 0.1, 0, 1e-5, True),
    (2, 300, 8, 8),
)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112)  # timed sizes
LARGEST = (251, 1, 8, 8), (223, 1, 8, 8), (191, 1, 8, 8)  # also tested: the most work per thread
ROOFLINE_PROBLEM = 8, 8, 32, 32  # simulated for the roofline
LANES = 32  # per warp, and words per row of a TMA copy
ROW_BYTES = 4 * LANES
CLUSTER = 8  # blocks per channel
PIECES = 8  # per block, one per warp
PARTS = CLUSTER * PIECES
BOX_IMAGES, BOX_ROWS = 1, 98  # per piece
SMEM_ROWS = 104  # of a piece in shared memory, which begins at a multiple of 1024 bytes
ELEMENT = np.float32  # type in memory; uint32 for two bfloat16
CLUSTER_SIZES = 1, 2, 4, 8
MAX_ROWS = 104
MAX_PIECES, MAX_BLOCKS_PER_SM = 32, 4  # pieces per block
FREE_PIECES = {FP32: 24, BF16: 28, FP16: 28}  # larger blocks need launch bounds, to have 80 or 72 registers per thread
HALF_BYTES, MAX_BYTES = 106 * 1024, 212 * 1024  # per block, for two or one per SM
FULL_MASK = 0xFFFFFFFF


@cuda.jit(cluster=CLUSTER)
def overlapped(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, counter, images, rows, eps, momentum,
    relu,
):  # fmt: skip
    tiles = ptx.shared_array(0, (PIECES, SMEM_ROWS, LANES), ELEMENT)
    shared_moments = cuda.shared.array((2, MOMENT_FIELDS, PARTS), np.float32)
    next_channels = cuda.shared.array(2, np.uint32)  # two buffers, used alternately by channels
    full_bar = cuda.shared.array(PIECES, np.uint64)
    lane, warp, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y), np.uint32(ptx.cluster_rank())
    channels = np.uint32(weight.shape[0])
    counter_wrap = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # a wasted claim ends each cluster, the last at 0
    piece = np.uint32(rank * PIECES + warp)
    boxes = np.uint32(rows // BOX_ROWS)  # per plane
    image, row = np.uint32(piece // boxes * BOX_IMAGES), np.uint32(piece % boxes * BOX_ROWS)
    has_piece = image < images
    # -- claim the first channel and load it --
    if lane == 0:
        ptx.mbarrier_init(full_bar, warp, 1)
        ptx.mbarrier_init_fence()
    ptx.cluster_sync()
    if piece == 0 and lane == 0:
        next_channels[0] = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        for block in range(1, CLUSTER):
            ptx.cluster_store(next_channels, 0, block, next_channels[0])
    ptx.cluster_sync()
    c = next_channels[0]
    if c < channels and has_piece and lane == 0:
        ptx.mbarrier_expect(full_bar, warp, BOX_IMAGES * BOX_ROWS * ROW_BYTES)
        ptx.tma_load(tiles, (warp, 0, 0), x_map, (image, c, row, 0), full_bar, warp)

    iteration = np.uint32(0)
    while c < channels:
        # -- claim the next channel --
        next_c = np.uint32(0)
        if piece == 0 and lane == 0:
            next_c = cuda.atomic.inc(counter, 0, counter_wrap - np.uint32(1))
        # -- sum the values of this channel --
        num_values = average = mean_low = m2 = np.float32(0)  # m2: sum of squared deviations from the mean
        if has_piece:
            ptx.mbarrier_wait(full_bar, warp, iteration % 2)
            num_values, average, mean_low, m2 = piece_moments(tiles, warp, lane, BOX_IMAGES * BOX_ROWS)
        num_values, average, mean_low, m2 = warp_moments(num_values, average, mean_low, m2)
        num_values, average = cuda.shfl_sync(FULL_MASK, num_values, 0), cuda.shfl_sync(FULL_MASK, average, 0)
        mean_low, m2 = cuda.shfl_sync(FULL_MASK, mean_low, 0), cuda.shfl_sync(FULL_MASK, m2, 0)
        # -- exchange within the cluster --
        if lane < CLUSTER:
            ptx.cluster_store(shared_moments, (iteration % 2, 0, piece), lane, num_values)
            ptx.cluster_store(shared_moments, (iteration % 2, 1, piece), lane, average)
            ptx.cluster_store(shared_moments, (iteration % 2, 2, piece), lane, mean_low)
            ptx.cluster_store(shared_moments, (iteration % 2, 3, piece), lane, m2)
        if piece == 0 and lane == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(next_channels, (iteration + 1) % 2, block, next_c)
        ptx.cluster_sync()

        # -- statistics of this channel --
        num_values = average = mean_low = m2 = np.float32(0)
        for other in range(lane, PARTS, LANES):
            n, m = shared_moments[iteration % 2, 0, other], shared_moments[iteration % 2, 1, other]  # count, mean
            # the rounding error of the mean, and m2
            r, s = shared_moments[iteration % 2, 2, other], shared_moments[iteration % 2, 3, other]
            num_values, average, mean_low, m2 = merge_moments(num_values, average, mean_low, m2, n, m, r, s)
        num_values, average, mean_low, m2 = warp_moments(num_values, average, mean_low, m2)
        centre, scale = average + mean_low, weight[c] / sqrt(m2 / num_values + eps)
        if piece == 0 and lane == 0:
            mean[c] = centre
            variance[c] = m2 / num_values
            keep = np.float32(1) - momentum
            running_mean[c] = keep * running_mean[c] + momentum * centre
            running_variance[c] = keep * running_variance[c] + momentum * m2 / (num_values - np.float32(1))
        centre, scale = cuda.shfl_sync(FULL_MASK, centre, 0), cuda.shfl_sync(FULL_MASK, scale, 0)

        # -- write y, load the next channel --
        if has_piece:
            normalise_piece(tiles, warp, lane, BOX_IMAGES * BOX_ROWS, centre, scale, bias[c], relu)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.tma_store(y_map, (image, c, row, 0), tiles, (warp, 0, 0))
                ptx.tma_store_commit()
                if next_channels[(iteration + 1) % 2] < channels:
                    ptx.tma_store_wait(0)
                    ptx.mbarrier_expect(full_bar, warp, BOX_IMAGES * BOX_ROWS * ROW_BYTES)
                    ptx.tma_load(
                        tiles, (warp, 0, 0), x_map, (image, next_channels[(iteration + 1) % 2], row, 0), full_bar, warp
                    )
        cuda.syncwarp()
        iteration += np.uint32(1)
        c = next_channels[iteration % 2]
    if has_piece and lane == 0:
        ptx.tma_store_wait(0)


class Geometry(NamedTuple):
    """Division of channels: images and 128-byte rows per piece, pieces per block, blocks per cluster, clusters."""

    box_images: int
    box_rows: int
    pieces: int
    blocks: int
    clusters: int

    @property
    def smem_rows(self) -> int:
        """Rows of a piece in shared memory, a multiple of eight."""
        return -(-self.box_images * self.box_rows // 8) * 8

    @property
    def smem_bytes(self) -> int:
        """Shared memory per block."""
        return self.pieces * self.smem_rows * ROW_BYTES


def geometry(problem, itemsize: int) -> Geometry:
    """Return the smallest clusters for which two blocks fit into an SM, all resident.

    Raise TooLarge if planes are not whole rows of 128 bytes, or a channel does not fit into a cluster.
    """
    rows, rest = divmod(problem.H * problem.W * itemsize, ROW_BYTES)
    if rest:
        raise TooLarge(f"planes of {problem.H} x {problem.W} pixels are no rows of 128 bytes")
    box_rows = _divisor(rows, MAX_ROWS)
    box_images = _divisor(problem.N, MAX_ROWS // box_rows)
    boxes = problem.N // box_images * (rows // box_rows)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in CLUSTER_SIZES:
        geom = Geometry(box_images, box_rows, -(-boxes // blocks), blocks, 1)
        if geom.pieces <= MAX_PIECES // 2 and geom.smem_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if geom.smem_bytes > MAX_BYTES or geom.pieces > MAX_PIECES:
        raise TooLarge(f"a channel has {boxes} pieces of {box_images * box_rows} rows of 128 bytes, beyond a cluster")
    blocks_per_sm = min(2 * HALF_BYTES // geom.smem_bytes, 2 * MAX_PIECES // geom.pieces, MAX_BLOCKS_PER_SM)
    return geom._replace(clusters=min(problem.C, blocks_per_sm * (sms // blocks)))


def _divisor(number, limit):
    """Return the largest divisor of a number within a limit."""
    return max(n for n in range(1, min(number, limit) + 1) if number % n == 0)


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """Return the launches for y and all statistics of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    geom = geometry(problem, format.itemsize)
    rows = problem.H * problem.W * format.itemsize // ROW_BYTES
    shape = problem.N, problem.C, rows, ROW_BYTES // format.itemsize
    box = geom.box_images, 1, geom.box_rows, LANES
    maps = [ptx.TensorMap(tma_rows(X, *shape), box) for X in (x, y)]
    sizes = np.uint32(problem.N), np.uint32(rows)
    numbers = *sizes, np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    statistics = mean, variance, running_mean, running_variance, workspace.counters(1)
    arguments = *maps, weight, bias, *statistics, *numbers
    grid, block = geom.blocks * geom.clusters, (LANES, geom.pieces)
    return [Launch(specialise_for(overlapped, geom, format), grid, block, arguments, geom.smem_bytes)]


@lru_cache(128)  # kernels: many sizes of images need their own
def specialise_for(kernel, geom: Geometry, format):
    """Return the kernel's copy for a geometry and a format."""
    constants = {"CLUSTER": geom.blocks, "PIECES": geom.pieces, "SMEM_ROWS": geom.smem_rows}
    constants |= {"BOX_IMAGES": geom.box_images, "BOX_ROWS": geom.box_rows}
    constants |= element_constants(format.dtype, VECTOR_BYTES // format.itemsize)
    bounds = LANES * geom.pieces if geom.pieces > FREE_PIECES[format] else None
    return specialise(cuda.jit(cluster=geom.blocks, launch_bounds=bounds)(kernel.py_func), **constants)
