"""All pixels of a few channels stay on the chip between their two uses, and blocks synchronise in between.

In NHWC the values of a channel are a whole pixel apart, and the smallest memory access has 32 bytes. A group of blocks
therefore processes the channels in 64 bytes of all pixels: 13 MB of a batch of 64 images of 56 x 56 pixels, 0.1 MB in
each of 132 blocks. Two blocks fit into an SM. They belong to two groups: while one group synchronises, the other uses
the memory. A warp owns a piece, some pixels. TMA loads it, and the warp sums each channel. The blocks of a group write
their sums to memory, synchronise, and each merges all sums. The warp normalises its piece in place, stores it, and
requests the same pixels of the next channels.

Costs in passes over memory, each of which reads or writes all values once:

    2       one_read: read, written
    2       passes in all

Limited by the synchronisation of blocks: each message between blocks waits in the same queues as all loads and stores,
and five such waits are sequential.

Parts: `sync_blocks` of `labkit.parts.grid_barrier`; `merge_moments`, `warp_moments` of `labkit.parts.moments`;
`load_at`, `store_at` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last import SUPPORTED
from labkit.norm.pieces import normalise, tma_rows
from labkit.parts.grid_barrier import sync_blocks
from labkit.parts.moments import merge_moments, warp_moments
from labkit.parts.vector_widths import element_constants
from labkit.parts.vectors import load_at, store_at

FORMATS = FP32, BF16, FP16
EXAMPLES = (  # tested sizes: N, C, H, W, relu, layout, momentum, batches, eps, hard
    (2, 8, 3, 5, True, "NHWC"),
    (3, 16, 8, 9, False, "NHWC", None, 3, 0.1),
    (6, 24, 20, 10, True, "NHWC", 0.1, 0, 1e-5, True),
    (1, 528, 4, 5, True, "NHWC"),
    (5, 40, 12, 15, True, "NHWC"),
)
LANES, LINE_WORDS, LINE_VECTORS = 32, 32, 8  # per warp; per 128-byte line
FIELDS = 3  # that a block writes to memory: the mean in two floats, and m2, the sum of squared deviations
WIDTH = 4  # channels per lane: 16 bytes
ELEMENT = np.float32  # type in memory; uint32 for two bfloat16
VECTORS = 4  # per row of a piece
CHANNELS = WIDTH * VECTORS
PIECES = 8  # per block, one per warp
PER_WARP = -(-CHANNELS // PIECES)  # channels merged per warp
BOX_PIXELS = 192  # per piece
LINES = BOX_PIXELS * VECTORS // LINE_VECTORS
GROUPS = 2
BLOCKS_PER_LANE = 5  # blocks of the group that a lane merges
REFERENCE_PIXELS = 4  # the mean of a block's first pixels is subtracted from all its values
MIN_PIECES, MAX_PIECES, MAX_BOX_PIXELS = 4, 8, 256
TILE_BYTES = 1024  # pieces begin at multiples of this
SMEM_BYTES = {2: 104 * 1024, 1: 208 * 1024}  # per block, by blocks per SM
# vectors per row, blocks per SM and least number of groups, the preferred ones first
CHOICES = (8, 2, 2), (4, 2, 2), (8, 1, 1), (8, 2, 1), (4, 2, 1), (4, 1, 1), (2, 2, 1), (2, 1, 1)
FULL_MASK = 0xFFFFFFFF


@cuda.jit(cooperative=True, launch_bounds=(256, 2))
def one_read(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, partials, arrived, pixels, eps,
    momentum, relu,
):  # fmt: skip
    tiles = ptx.shared_array(0, (PIECES, LINES, LINE_WORDS), ELEMENT)
    full_bar = cuda.shared.array(PIECES, np.uint64)
    warp_partials = cuda.shared.array((2, PIECES, CHANNELS), np.float32)
    references = cuda.shared.array(CHANNELS, np.float32)
    centres = cuda.shared.array(CHANNELS, np.float32)
    scales = cuda.shared.array(CHANNELS, np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    reference = cuda.local.array(WIDTH, np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    squares = cuda.local.array(WIDTH, np.float32)
    block_partials = cuda.local.array((PER_WARP, FIELDS, BLOCKS_PER_LANE), np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    group, block = np.uint32(cuda.blockIdx.x % GROUPS), np.uint32(cuda.blockIdx.x // GROUPS)
    blocks, channels = np.uint32(cuda.gridDim.x // GROUPS), np.uint32(weight.shape[0])
    block_begin = np.uint32(block * PIECES * BOX_PIXELS)  # the block's first pixel
    pixel = np.uint32(block_begin + warp * BOX_PIXELS)
    count = np.uint32(min(BOX_PIXELS, max(pixels, pixel) - pixel))
    block_count = np.uint32(min(PIECES * BOX_PIXELS, max(pixels, block_begin) - block_begin))
    first = np.uint32(lane % VECTORS * WIDTH)  # index of the lane's first channel
    inv_reference_count = np.float32(1) / np.float32(max(np.uint32(1), min(np.uint32(REFERENCE_PIXELS), block_count)))
    words = np.uint32(CHANNELS * LINE_WORDS // (WIDTH * LINE_VECTORS))  # per row of a piece
    # -- load the first channels --
    if lane == 0:
        ptx.mbarrier_init(full_bar, warp, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if count > 0 and lane == 0:
        ptx.mbarrier_expect(full_bar, warp, BOX_PIXELS * VECTORS * 16)
        ptx.tma_load(tiles, (warp, 0, 0), x_map, (pixel, group * words), full_bar, warp)

    iteration = np.uint32(0)
    for chunk in range(group, (channels + CHANNELS - 1) // CHANNELS, GROUPS):
        c = np.uint32(chunk * CHANNELS)
        # -- reference value of each channel --
        for e in range(WIDTH):
            reference[e] = total[e] = squares[e] = np.float32(0)
        if block_count > 0:
            ptx.mbarrier_wait(full_bar, 0, iteration % 2)
            # TMA swizzles: in line n, vector v is at v ^ n % VECTORS, so that lanes use different banks
            for p in range(min(REFERENCE_PIXELS, block_count)):
                v = np.uint32(p * VECTORS + lane % VECTORS)
                load_at(tiles, (0, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4), x_reg)
                for e in range(WIDTH):
                    reference[e] += x_reg[e] * inv_reference_count
        # -- sum the values of these channels --
        if count > 0:
            ptx.mbarrier_wait(full_bar, warp, iteration % 2)
            for v in range(lane, count * VECTORS, LANES):
                load_at(tiles, (warp, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4), x_reg)
                for e in range(WIDTH):
                    value = x_reg[e] - reference[e]
                    total[e] += value
                    squares[e] += value * value
        # -- sums of the block --
        for e in range(WIDTH):
            offset = LANES // 2
            while offset >= VECTORS:
                total[e] += cuda.shfl_down_sync(FULL_MASK, total[e], offset)
                squares[e] += cuda.shfl_down_sync(FULL_MASK, squares[e], offset)
                offset //= 2
            if lane < VECTORS:
                warp_partials[0, warp, first + e], warp_partials[1, warp, first + e] = total[e], squares[e]
            if warp == 0 and lane < VECTORS:
                references[first + e] = reference[e]
        cuda.syncthreads()
        if warp == 0:
            for channel in range(lane, min(np.uint32(CHANNELS), channels - c), LANES):
                all_total = all_squares = np.float32(0)
                for other in range(PIECES):
                    all_total += warp_partials[0, other, channel]
                    all_squares += warp_partials[1, other, channel]
                mean_low = all_total / np.float32(max(np.uint32(1), block_count))
                partials[0, c + channel, block], partials[1, c + channel, block] = references[channel], mean_low
                partials[2, c + channel, block] = all_squares - all_total * mean_low
        # -- exchange within the group --
        sync_blocks(arrived, chunk, blocks)

        # -- statistics of these channels --
        for j in range(PER_WARP):
            channel = c + min(np.uint32(warp + j * PIECES), min(np.uint32(CHANNELS), channels - c) - np.uint32(1))
            for step in range(BLOCKS_PER_LANE):
                other = min(np.uint32(lane + step * LANES), np.uint32(blocks - 1))
                for field in range(FIELDS):
                    block_partials[j, field, step] = partials[field, channel, other]
        for j in range(PER_WARP):
            channel = np.uint32(warp + j * PIECES)
            num_values = average = mean_low = m2 = np.float32(0)
            for step in range(BLOCKS_PER_LANE):
                other_begin = np.uint32((lane + step * LANES) * PIECES * BOX_PIXELS)
                n = np.float32(min(np.uint32(PIECES * BOX_PIXELS), max(pixels, other_begin) - other_begin))
                s = block_partials[j, 2, step] if n > np.float32(0) else np.float32(0)  # m2
                m, r = block_partials[j, 0, step], block_partials[j, 1, step]  # the mean and its rounding error
                num_values, average, mean_low, m2 = merge_moments(num_values, average, mean_low, m2, n, m, r, s)
            num_values, average, mean_low, m2 = warp_moments(num_values, average, mean_low, m2)
            if lane == 0 and channel < CHANNELS and c + channel < channels:
                centre = average + mean_low
                centres[channel], scales[channel] = centre, weight[c + channel] / sqrt(m2 / num_values + eps)
                if block == 0:
                    mean[c + channel] = centre
                    variance[c + channel] = m2 / num_values
                    unbiased, keep = m2 / (num_values - np.float32(1)), np.float32(1) - momentum
                    running_mean[c + channel] = keep * running_mean[c + channel] + momentum * centre
                    running_variance[c + channel] = keep * running_variance[c + channel] + momentum * unbiased
        cuda.syncthreads()

        # -- write y, load the next channels --
        if count > 0:
            for e in range(WIDTH):
                channel = np.uint32(min(c + first + e, channels - np.uint32(1)))
                # registers reused: centre, scale, shift
                reference[e], total[e], squares[e] = centres[channel - c], scales[channel - c], bias[channel]
            for v in range(lane, count * VECTORS, LANES):
                line, word = v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4
                load_at(tiles, (warp, line, word), x_reg)
                for e in range(WIDTH):
                    x_reg[e] = normalise(x_reg[e], reference[e], total[e], squares[e], relu)
                store_at(tiles, (warp, line, word), x_reg)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.tma_store(y_map, (pixel, chunk * words), tiles, (warp, 0, 0))
                ptx.tma_store_commit()
                ptx.tma_store_wait(0)
                if c + GROUPS * CHANNELS < channels:
                    ptx.mbarrier_expect(full_bar, warp, BOX_PIXELS * VECTORS * 16)
                    ptx.tma_load(tiles, (warp, 0, 0), x_map, (pixel, (chunk + GROUPS) * words), full_bar, warp)
        iteration += np.uint32(1)


class Geometry(NamedTuple):
    """Division of images: 16-byte vectors per pixel and group, pixels per piece, pieces per block, blocks, groups."""

    vectors: int
    box_pixels: int
    pieces: int
    blocks: int
    groups: int

    @property
    def smem_bytes(self) -> int:
        """Shared memory per block."""
        return self.pieces * self.box_pixels * self.vectors * 16


def geometry(problem, itemsize: int) -> Geometry:
    """Return the longest rows for which two groups are resident, or one; rows of 32 bytes are the last choice.

    Raise TooLarge if pixels do not begin at multiples of 16 bytes, or there are too many of them.
    """
    if problem.C * itemsize % 16:
        raise TooLarge(f"{problem.C} channels of {itemsize} bytes are no multiple of 16 bytes")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for vectors, blocks_per_sm, groups in CHOICES:
        parts = -(-problem.C * itemsize // (vectors * 16))
        if geom := _divide(problem.values, vectors, parts, blocks_per_sm, sms, min(groups, parts)):
            return geom
    raise TooLarge(f"{problem.values} pixels are more than this GPU keeps of any channel")


def _divide(pixels, vectors, parts, blocks_per_sm, sms, min_groups):
    """Return the geometry for rows of a number of vectors; None if fewer groups than `min_groups` fit."""
    max_bytes, max_blocks = SMEM_BYTES[blocks_per_sm], sms * blocks_per_sm
    unit = TILE_BYTES // (vectors * 16)  # the pixels of a piece are a multiple of this
    groups = min(parts, max_blocks // -(-pixels * vectors * 16 // max_bytes))
    if groups < min_groups:
        return None
    block_pixels = -(-pixels // min(max_blocks // groups, -(-pixels // (MIN_PIECES * unit))))
    pieces = min(MAX_PIECES, -(-block_pixels // unit))
    box_pixels = -(-block_pixels // (pieces * unit)) * unit
    geom = Geometry(vectors, box_pixels, pieces, -(-pixels // (pieces * box_pixels)), groups)
    return geom if geom.smem_bytes <= max_bytes and box_pixels <= MAX_BOX_PIXELS else None


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """Return the launches for y and all statistics of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    geom = geometry(problem, format.itemsize)
    box = geom.box_pixels, geom.vectors * 4
    maps = [ptx.TensorMap(tma_rows(X, problem.values, problem.C), box) for X in (x, y)]
    partials = workspace.array("partials", (FIELDS, problem.C, geom.blocks), np.float32)
    arrived = workspace.counters(-(-problem.C * format.itemsize // (geom.vectors * 16)))
    numbers = np.uint32(problem.values), np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    statistics = weight, bias, mean, variance, running_mean, running_variance, partials, arrived
    grid, block = geom.blocks * geom.groups, (LANES, geom.pieces)
    arguments = *maps, *statistics, *numbers
    return [Launch(specialise_for(one_read, geom, format), grid, block, arguments, geom.smem_bytes)]


@lru_cache(128)  # kernels: many sizes of images need their own
def specialise_for(kernel, geom: Geometry, format):
    """Return the kernel's copy for a geometry and a format."""
    constants = {
        "VECTORS": geom.vectors,
        "BOX_PIXELS": geom.box_pixels,
        "PIECES": geom.pieces,
        "GROUPS": geom.groups,
    }
    constants["BLOCKS_PER_LANE"] = -(-geom.blocks // LANES)
    constants |= element_constants(format.dtype, VECTOR_BYTES // format.itemsize)
    return specialise(kernel, **constants)
