"""The tiles read first stay on the chip, those read last are still in L2: only the ones in between are read again.

A batch of 64 images of 56 x 56 pixels has 205 MB. The SMs of an H100 keep 27 MB of it, so that most is read twice.
Persistent blocks keep a part between the two uses; two kernels would lose all. Each block processes every 132nd tile of
pixels, with all their channels: contiguous memory, of which every byte is used. TMA loads the first tiles into
permanent buffers, and the others into a ring; the threads sum each tile that has arrived. Then blocks synchronise
twice: all write their sums, each merges them for a few channels, and all read the results. Now the ring runs backwards:
tiles are normalised in place and stored, and earlier ones are loaded again, the latest first, some of which L2 still
holds. The permanent tiles come last, so that L2 need not hold them.

Costs in passes over memory, each of which reads or writes all values once:

    2       first_kept: read, written; what is not kept is read again
    2       passes in all

Limited by memory: L2 and the SMs together hold only a part.

Parts: `sync_blocks` of `labkit.parts.grid_barrier`; `merge_moments`, `warp_moments` of `labkit.parts.moments`;
`load_at`, `store_at` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import lcm, sqrt
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
    (2, 8, 4, 4, True, "NHWC"),
    (3, 16, 8, 9, False, "NHWC", None, 3, 0.1),
    (6, 24, 20, 10, True, "NHWC", 0.1, 0, 1e-5, True),
    (1, 544, 4, 5, True, "NHWC"),
    (2, 40, 12, 16, True, "NHWC"),
)
LANES, LINE_WORDS, LINE_VECTORS = 32, 32, 8  # per warp; per 128-byte line
WARPS = 16  # that sum and normalise; one more warp issues TMA copies
THREADS = LANES * WARPS
GROUPS, GROUPINGS = 4, (1, 2, 4)  # of warps: each has its own slots of the ring, so that it rarely waits
GROUP_THREADS = THREADS // GROUPS
FIELDS = 3  # that a block writes to memory: the mean in two floats, and m2, the sum of squared deviations
WIDTH = 4  # channels per thread: 16 bytes
ELEMENT = np.float32  # type in memory; uint32 for two bfloat16
PIXEL_VECTORS = 64  # vectors per pixel
LINES = SMEM_LINES = 128  # per tile, and in its shared memory, which begins at a multiple of 1024 bytes
TILE = LINES * LINE_VECTORS  # vectors
PERMANENT, RING_SLOTS = 8, 5  # permanent tiles, and tiles of the ring
SLOTS = PERMANENT + RING_SLOTS
MAX_RING_SLOTS = 8
LAG = 1  # stores in flight, which still read their tiles
REFERENCE_PIXELS = 4  # the mean of a block's first pixels is subtracted from all its values
BLOCKS_PER_LANE = 5  # blocks that a lane merges
MAX_VECTORS, MAX_LINES = 1024, 256  # per tile: the preferred size, and the limit of a TMA copy
CHIP_BYTES = 224 * 1024  # of shared memory per SM, without a block's small arrays


@cuda.jit(device=True)
def tile_slot(i):
    """Return the slot of the i-th tile of a block, and the number of earlier tiles in that slot."""
    if i < PERMANENT:
        return np.uint32(i), np.uint32(0)
    return np.uint32(PERMANENT + (i - PERMANENT) % RING_SLOTS), np.uint32((i - PERMANENT) // RING_SLOTS)


@cuda.jit(device=True)
def tile_slot_backwards(step, num_tiles, num_streamed):
    """Return the tile that a block normalises at a step, its slot, and how often tiles of that slot were consumed.

    Tiles of the ring come first, the latest one before the others; then the permanent ones.
    """
    if step >= num_streamed:
        return np.uint32(step - num_streamed), np.uint32(step - num_streamed), np.uint32(1)
    i = np.uint32(num_tiles - 1 - step)
    slot = np.uint32((i - PERMANENT) % RING_SLOTS)
    return i, np.uint32(PERMANENT + slot), np.uint32((num_streamed - 1 - slot) // RING_SLOTS + 1 + step // RING_SLOTS)


@cuda.jit(device=True)
def pixels_of(block, blocks, pixels):
    """Return the number of pixels of a block."""
    per_tile = np.uint32(TILE // PIXEL_VECTORS)
    rounds, rest = pixels // (per_tile * blocks), pixels % (per_tile * blocks)
    return rounds * per_tile + min(per_tile, max(rest, block * per_tile) - block * per_tile)


@cuda.jit(cooperative=True, launch_bounds=THREADS + LANES)
def first_kept(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, partials, scales, arrived, pixels, eps,
    momentum, relu,
):  # fmt: skip
    tiles = ptx.shared_array(0, (SLOTS, SMEM_LINES, LINE_WORDS), ELEMENT)
    full_bar = cuda.shared.array(SLOTS, np.uint64)
    consumed = cuda.shared.array(SLOTS, np.uint64)
    sums = cuda.shared.array((2, WIDTH, THREADS), np.float32)
    references = cuda.shared.array((WIDTH, PIXEL_VECTORS), np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    reference = cuda.local.array(WIDTH, np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    squares = cuda.local.array(WIDTH, np.float32)
    block_partials = cuda.local.array((FIELDS, BLOCKS_PER_LANE), np.float32)
    t, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    lane, warp, channels = np.uint32(t % LANES), np.uint32(t // LANES), np.uint32(weight.shape[0])
    group, u = np.uint32(t // GROUP_THREADS), np.uint32(t % GROUP_THREADS)
    active = np.uint32(GROUP_THREADS // PIXEL_VECTORS * PIXEL_VECTORS)  # threads: each keeps its channels in all tiles
    count = pixels_of(block, blocks, pixels)
    vectors = np.uint32(count * PIXEL_VECTORS)  # of the block
    num_tiles = np.uint32((vectors + TILE - 1) // TILE)  # of the block
    num_streamed = np.uint32(max(num_tiles, np.uint32(PERMANENT)) - PERMANENT)  # tiles that pass through the ring
    # -- initialise the barriers --
    if t == 0:
        for slot in range(SLOTS):
            ptx.mbarrier_init(full_bar, slot, 1)
            ptx.mbarrier_init(consumed, slot, WARPS // GROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()

    # -- load tiles; sum the values --
    if warp == WARPS:
        if lane == 0:
            for i in range(num_tiles):
                slot, uses = tile_slot(i)
                if uses > 0:
                    ptx.mbarrier_wait(consumed, slot, (uses - 1) % 2)
                ptx.mbarrier_expect(full_bar, slot, TILE * 16)
                ptx.tma_load(tiles, (slot, 0, 0), x_map, ((block + i * blocks) * LINES, 0), full_bar, slot)
        cuda.syncwarp()
    else:
        for e in range(WIDTH):
            reference[e] = total[e] = squares[e] = np.float32(0)
        if num_tiles > 0:
            ptx.mbarrier_wait(full_bar, 0, 0)
            first_pixels = min(np.uint32(min(REFERENCE_PIXELS, TILE // PIXEL_VECTORS)), count)
            inv_reference_count = np.float32(1) / np.float32(first_pixels)
            for p in range(first_pixels):  # TMA swizzles: in line n, v is at v ^ n, so that lanes use different banks
                v = np.uint32(p * PIXEL_VECTORS + u % PIXEL_VECTORS)
                load_at(tiles, (0, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4), x_reg)
                for e in range(WIDTH):
                    reference[e] += x_reg[e] * inv_reference_count
        for i in range(group, num_tiles, GROUPS):
            slot, uses = tile_slot(i)
            ptx.mbarrier_wait(full_bar, slot, uses % 2)
            if u < active:
                for v in range(u, min(np.uint32(TILE), vectors - i * TILE), active):
                    load_at(
                        tiles,
                        (slot, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4),
                        x_reg,
                    )
                    for e in range(WIDTH):
                        value = x_reg[e] - reference[e]
                        total[e] += value
                        squares[e] += value * value
            cuda.syncwarp()
            if lane == 0:
                ptx.mbarrier_arrive(consumed, slot)
        for e in range(WIDTH):
            sums[0, e, t], sums[1, e, t] = total[e], squares[e]
            if t < PIXEL_VECTORS:
                references[e, t] = reference[e]
    cuda.syncthreads()
    # -- sums of the block --
    for k in range(t, WIDTH * PIXEL_VECTORS, THREADS + LANES):
        e, column = np.uint32(k // PIXEL_VECTORS), np.uint32(k % PIXEL_VECTORS)
        all_total = all_squares = np.float32(0)
        for first in range(column, THREADS, GROUP_THREADS):
            for other in range(first, first + active - column, PIXEL_VECTORS):
                all_total += sums[0, e, other]
                all_squares += sums[1, e, other]
        c = np.uint32(column * WIDTH + e)
        mean_low = all_total / np.float32(count)
        partials[0, c, block], partials[1, c, block] = references[e, column], mean_low
        partials[2, c, block] = all_squares - all_total * mean_low
    # -- exchange among all blocks --
    sync_blocks(arrived, 0, blocks)

    # -- statistics of some channels --
    for c in range(warp * blocks + block, channels, (WARPS + 1) * blocks):
        for step in range(BLOCKS_PER_LANE):
            other = min(np.uint32(lane + step * LANES), np.uint32(blocks - 1))
            for field in range(FIELDS):
                block_partials[field, step] = partials[field, c, other]
        num_values = average = mean_low = m2 = np.float32(0)
        for step in range(BLOCKS_PER_LANE):
            other = np.uint32(lane + step * LANES)
            n = np.float32(pixels_of(other, blocks, pixels)) if other < blocks else np.float32(0)
            s = block_partials[2, step] if other < blocks else np.float32(0)  # m2
            m, r = block_partials[0, step], block_partials[1, step]  # the mean and its rounding error
            num_values, average, mean_low, m2 = merge_moments(num_values, average, mean_low, m2, n, m, r, s)
        num_values, average, mean_low, m2 = warp_moments(num_values, average, mean_low, m2)
        if lane == 0:
            centre = average + mean_low
            mean[c], variance[c] = centre, m2 / num_values
            scales[c] = weight[c] / sqrt(m2 / num_values + eps)
            unbiased, keep = m2 / (num_values - np.float32(1)), np.float32(1) - momentum
            running_mean[c] = keep * running_mean[c] + momentum * centre
            running_variance[c] = keep * running_variance[c] + momentum * unbiased
    # -- exchange the statistics --
    sync_blocks(arrived, 1, blocks)

    # -- store tiles, load again; write y --
    if warp == WARPS:
        if lane == 0:
            for step in range(num_tiles):
                i, slot, uses = tile_slot_backwards(step, num_tiles, num_streamed)
                ptx.mbarrier_wait(consumed, slot, uses % 2)
                ptx.tma_store(y_map, ((block + i * blocks) * LINES, 0), tiles, (slot, 0, 0))
                ptx.tma_store_commit()
                if step >= LAG and step - LAG + RING_SLOTS < num_streamed:
                    ptx.tma_store_wait(LAG)
                    i, slot, uses = tile_slot_backwards(step - LAG + RING_SLOTS, num_tiles, num_streamed)
                    ptx.mbarrier_expect(full_bar, slot, TILE * 16)
                    ptx.tma_load(tiles, (slot, 0, 0), x_map, ((block + i * blocks) * LINES, 0), full_bar, slot)
            ptx.tma_store_wait(0)
    else:
        c = np.uint32(u % PIXEL_VECTORS * WIDTH)
        for e in range(WIDTH):
            reference[e], total[e], squares[e] = mean[c + e], scales[c + e], bias[c + e]
        for step in range(group, num_tiles, GROUPS):
            i, slot, uses = tile_slot_backwards(step, num_tiles, num_streamed)
            if RING_SLOTS <= step < num_streamed:
                ptx.mbarrier_wait(full_bar, slot, (uses - 1) % 2)
            if u < active:
                for v in range(u, min(np.uint32(TILE), vectors - i * TILE), active):
                    line, word = v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4
                    load_at(tiles, (slot, line, word), x_reg)
                    for e in range(WIDTH):
                        x_reg[e] = normalise(x_reg[e], reference[e], total[e], squares[e], relu)
                    store_at(tiles, (slot, line, word), x_reg)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.mbarrier_arrive(consumed, slot)


class Geometry(NamedTuple):
    """Division of images: 16-byte vectors per pixel, 128-byte lines per tile; permanent tiles, ring slots and groups
    of warps per block; blocks."""

    pixel_vectors: int
    lines: int
    permanent: int
    ring_slots: int
    groups: int
    blocks: int

    @property
    def smem_lines(self) -> int:
        """Lines of a tile in shared memory, a multiple of eight."""
        return -(-self.lines // 8) * 8

    @property
    def smem_bytes(self) -> int:
        """Shared memory per block."""
        return (self.permanent + self.ring_slots) * self.smem_lines * LINE_WORDS * 4


def geometry(problem, itemsize: int) -> Geometry:
    """Return tiles of the preferred size, or smaller ones if a block then has the same number; keep all that fit.

    Raise TooLarge if pixels do not begin at multiples of 16 bytes, have more channels than a block's threads process,
    or no tile of whole pixels has whole lines.
    """
    pixel_vectors, rest = divmod(problem.C * itemsize, 16)
    if rest:
        raise TooLarge(f"{problem.C} channels of {itemsize} bytes are no multiple of 16 bytes")
    all_vectors, unit = problem.values * pixel_vectors, lcm(pixel_vectors, LINE_VECTORS)
    if pixel_vectors > THREADS or unit > MAX_LINES * LINE_VECTORS or all_vectors % LINE_VECTORS:
        raise TooLarge(f"{problem.values} pixels of {problem.C} channels are no tiles of whole lines of 128 bytes")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    rounds = -(-all_vectors // (sms * max(MAX_VECTORS, unit)))
    units = min(-(-all_vectors // (sms * rounds * unit)), MAX_LINES * LINE_VECTORS // unit)
    vectors = units * unit  # per tile
    geom = Geometry(pixel_vectors, vectors // LINE_VECTORS, 0, 1, 1, min(sms, -(-all_vectors // vectors)))
    sum_bytes = (2 * THREADS + pixel_vectors) * 16 // itemsize * 4
    slots, tiles = (CHIP_BYTES - sum_bytes) // geom.smem_bytes, -(-all_vectors // (vectors * geom.blocks))
    groups = max(n for n in GROUPINGS if n * pixel_vectors <= THREADS and n < slots)
    ring_slots = min(MAX_RING_SLOTS, slots - 1) // groups * groups if tiles > slots else 1
    return geom._replace(permanent=min(slots, tiles) - ring_slots, ring_slots=ring_slots, groups=groups)


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """Return the launches for y and all statistics of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, supported=SUPPORTED, dtype=format.dtype)
    geom = geometry(problem, format.itemsize)
    elements = 128 // format.itemsize  # per line
    shape = problem.values * problem.C // elements, elements
    maps = [ptx.TensorMap(tma_rows(X, *shape), (geom.lines, LINE_WORDS)) for X in (x, y)]
    partials = workspace.array("partials", (FIELDS, problem.C, geom.blocks), np.float32)
    scales = workspace.array("scales", (problem.C,), np.float32)
    numbers = np.uint32(problem.values), np.float32(problem.eps), np.float32(problem.batch_weight), problem.relu
    statistics = mean, variance, running_mean, running_variance, partials, scales
    arguments = *maps, weight, bias, *statistics, workspace.counters(2), *numbers
    return [Launch(specialise_for(first_kept, geom, format), geom.blocks, THREADS + LANES, arguments, geom.smem_bytes)]


@lru_cache(128)  # kernels: many sizes of images need their own
def specialise_for(kernel, geom: Geometry, format):
    """Return the kernel's copy for a geometry and a format."""
    constants = {"PIXEL_VECTORS": geom.pixel_vectors, "BLOCKS_PER_LANE": -(-geom.blocks // LANES)}
    constants |= {"LINES": geom.lines, "SMEM_LINES": geom.smem_lines, "TILE": geom.lines * LINE_VECTORS}
    constants |= {"PERMANENT": geom.permanent, "RING_SLOTS": geom.ring_slots, "SLOTS": geom.permanent + geom.ring_slots}
    constants |= {"GROUPS": geom.groups, "GROUP_THREADS": THREADS // geom.groups}
    constants |= element_constants(format.dtype, VECTOR_BYTES // format.itemsize)
    return specialise(kernel, **constants)
