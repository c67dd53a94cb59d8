"""What is summed first stays on the chip, what is summed last is still in L2: only what is between is read again.

A batch of 64 images of 56 x 56 pixels has 205 MB, and the SMs of an H100 keep 27 of it, so that most must be read
twice. But blocks that stay keep a part, where two kernels would forget all. Each takes every 132nd tile of pixels, with
all their channels: memory that follows, of which nothing is fetched that nobody wants. The copy engine puts the first
tiles where they stay, and those after them into a ring; the threads sum what has come. Then blocks meet twice: all
leave what they found, each merges it for a few channels, all learn what became of these. Now the ring runs backwards:
tiles are scaled where they lie and stored, and those before them are fetched again, the latest first, some of which L2
still has. The tiles that stayed come at the end: what L2 holds of them would have been in the way.

Costs, in passes over memory, each of them all values read or written once, where all tiles are kept:

    2       first_kept: read, written; what is not kept is read again
    2       passes in all

Limited by memory: L2 and the SMs together hold a part only.

Parts: `sync_blocks` of `labkit.parts.meeting`; `merge_moments`, `warp_moments` of `labkit.parts.moments`; `load_at`,
`store_at` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import lcm, sqrt
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshaped
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.channels_last import TAKES
from labkit.norm.pieces import scaled
from labkit.parts.meeting import sync_blocks
from labkit.parts.moments import merge_moments, warp_moments
from labkit.parts.vectors import load_at, store_at

FORMATS = FP32, BF16
EXAMPLES = (
    (2, 8, 4, 4, True, "NHWC"),
    (3, 16, 8, 9, False, "NHWC", None, 3, 0.1),
    (6, 24, 20, 10, True, "NHWC", 0.1, 0, 1e-5, True),
    (1, 544, 4, 5, True, "NHWC"),
    (2, 40, 12, 16, True, "NHWC"),
)
BENCHED = (64, 256, 56, 56, True, "NHWC"), (32, 64, 112, 112, True, "NHWC"), (32, 512, 7, 7, True, "NHWC")
LANES, LINE_WORDS, LINE_VECTORS = 32, 32, 8  # of a warp; and of 128 bytes
WARPS = 16  # that sum and scale; one more gives orders to the copy engine
THREADS = LANES * WARPS
GROUPS, GROUPINGS = 4, (1, 2, 4)  # of warps: each has places of its own in the ring, so that it waits seldom
GROUP_THREADS = THREADS // GROUPS
FIELDS = 3  # that a block leaves in memory: the mean in two floats, and squares
WIDTH = 4  # channels of a thread: 16 bytes
ELEMENT = np.float32  # what memory holds, or words of two bfloat16
ACROSS = 64  # vectors of a pixel
LINES = KEPT_LINES = 128  # of a tile, and what it takes in shared memory, where tiles begin at multiples of 1024 bytes
TILE = LINES * LINE_VECTORS  # vectors
KEPT, RING = 8, 5  # tiles that stay, and of the ring
SLOTS = KEPT + RING
MOST_RING = 8
LAG = 1  # stores that may still read their tiles
NEAR = 4  # pixels, at the beginning of a block's first tile, whose mean is taken away from all of its values
SHARE = 5  # of the blocks, that a lane merges
MOST_VECTORS, MOST_LINES = 1024, 256  # of a tile: as many as should be, and as many as the copy engine moves at once
CHIP_BYTES = 224 * 1024  # of an SM, without what little else a block needs


@cuda.jit(device=True)
def place_of(i):
    """Where the i-th tile of a block lies, and how many have lain there before it."""
    if i < KEPT:
        return np.uint32(i), np.uint32(0)
    return np.uint32(KEPT + (i - KEPT) % RING), np.uint32((i - KEPT) // RING)


@cuda.jit(device=True)
def place_backwards(step, mine, passing):
    """Which tile of a block is scaled at a step, where it lies, and how often that place was summed and scaled before.

    Those that pass through the ring come first, the latest before all; then those that stayed.
    """
    if step >= passing:
        return np.uint32(step - passing), np.uint32(step - passing), np.uint32(1)
    i = np.uint32(mine - 1 - step)
    slot = np.uint32((i - KEPT) % RING)
    return i, np.uint32(KEPT + slot), np.uint32((passing - 1 - slot) // RING + 1 + step // RING)


@cuda.jit(device=True)
def pixels_of(block, blocks, pixels):
    """How many pixels a block sums."""
    per_tile = np.uint32(TILE // ACROSS)
    rounds, rest = pixels // (per_tile * blocks), pixels % (per_tile * blocks)
    return rounds * per_tile + min(per_tile, max(rest, block * per_tile) - block * per_tile)


@cuda.jit(cooperative=True, launch_bounds=THREADS + LANES)
def first_kept(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, partials, scales, arrived, pixels, eps,
    factor, relu,
):  # fmt: skip
    tiles = ptx.shared_array(0, (SLOTS, KEPT_LINES, LINE_WORDS), ELEMENT)
    landed = cuda.shared.array(SLOTS, np.uint64)
    done = cuda.shared.array(SLOTS, np.uint64)
    sums = cuda.shared.array((2, WIDTH, THREADS), np.float32)
    nears = cuda.shared.array((WIDTH, ACROSS), np.float32)
    own = cuda.local.array(WIDTH, np.float32)
    near = cuda.local.array(WIDTH, np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    squares = cuda.local.array(WIDTH, np.float32)
    theirs = cuda.local.array((FIELDS, SHARE), np.float32)
    t, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    lane, warp, channels = np.uint32(t % LANES), np.uint32(t // LANES), np.uint32(weight.shape[0])
    group, u = np.uint32(t // GROUP_THREADS), np.uint32(t % GROUP_THREADS)
    active = np.uint32(GROUP_THREADS // ACROSS * ACROSS)  # of a group: each meets the same channels in all tiles
    count = pixels_of(block, blocks, pixels)
    vectors = np.uint32(count * ACROSS)  # of the block
    mine = np.uint32((vectors + TILE - 1) // TILE)  # its tiles
    passing = np.uint32(max(mine, np.uint32(KEPT)) - KEPT)  # those that do not stay
    if t == 0:
        for slot in range(SLOTS):
            ptx.mbarrier_init(landed, slot, 1)
            ptx.mbarrier_init(done, slot, WARPS // GROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()

    if warp == WARPS:
        if lane == 0:
            for i in range(mine):
                slot, turn = place_of(i)
                if turn > 0:
                    ptx.mbarrier_wait(done, slot, (turn - 1) % 2)
                ptx.mbarrier_expect(landed, slot, TILE * 16)
                ptx.tma_load(tiles, (slot, 0, 0), x_map, ((block + i * blocks) * LINES, 0), landed, slot)
        cuda.syncwarp()
    else:
        for e in range(WIDTH):
            near[e] = total[e] = squares[e] = np.float32(0)
        if mine > 0:
            ptx.mbarrier_wait(landed, 0, 0)
            first_pixels = min(np.uint32(min(NEAR, TILE // ACROSS)), count)
            part_of_near = np.float32(1) / np.float32(first_pixels)
            for p in range(first_pixels):
                v = np.uint32(p * ACROSS + u % ACROSS)
                load_at(tiles, (0, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4), own)
                for e in range(WIDTH):
                    near[e] += own[e] * part_of_near
        for i in range(group, mine, GROUPS):
            slot, turn = place_of(i)
            ptx.mbarrier_wait(landed, slot, turn % 2)
            if u < active:
                for v in range(u, min(np.uint32(TILE), vectors - i * TILE), active):
                    load_at(
                        tiles, (slot, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4), own
                    )
                    for e in range(WIDTH):
                        value = own[e] - near[e]
                        total[e] += value
                        squares[e] += value * value
            cuda.syncwarp()
            if lane == 0:
                ptx.mbarrier_arrive(done, slot)
        for e in range(WIDTH):
            sums[0, e, t], sums[1, e, t] = total[e], squares[e]
            if t < ACROSS:
                nears[e, t] = near[e]
    cuda.syncthreads()
    for k in range(t, WIDTH * ACROSS, THREADS + LANES):
        e, column = np.uint32(k // ACROSS), np.uint32(k % ACROSS)
        all_total = all_squares = np.float32(0)
        for first in range(column, THREADS, GROUP_THREADS):
            for other in range(first, first + active - column, ACROSS):
                all_total += sums[0, e, other]
                all_squares += sums[1, e, other]
        c = np.uint32(column * WIDTH + e)
        rest = all_total / np.float32(count)
        partials[0, c, block], partials[1, c, block] = nears[e, column], rest
        partials[2, c, block] = all_squares - all_total * rest
    sync_blocks(arrived, 0, blocks)

    for c in range(warp * blocks + block, channels, (WARPS + 1) * blocks):
        for step in range(SHARE):
            other = min(np.uint32(lane + step * LANES), np.uint32(blocks - 1))
            for field in range(FIELDS):
                theirs[field, step] = partials[field, c, other]
        values = average = rest = deviations = np.float32(0)
        for step in range(SHARE):
            other = np.uint32(lane + step * LANES)
            n = np.float32(pixels_of(other, blocks, pixels)) if other < blocks else np.float32(0)
            s = theirs[2, step] if other < blocks else np.float32(0)
            m, r = theirs[0, step], theirs[1, step]
            values, average, rest, deviations = merge_moments(values, average, rest, deviations, n, m, r, s)
        values, average, rest, deviations = warp_moments(values, average, rest, deviations)
        if lane == 0:
            centre = average + rest
            mean[c], variance[c] = centre, deviations / values
            scales[c] = weight[c] / sqrt(deviations / values + eps)
            unbiased, keep = deviations / (values - np.float32(1)), np.float32(1) - factor
            running_mean[c] = keep * running_mean[c] + factor * centre
            running_variance[c] = keep * running_variance[c] + factor * unbiased
    sync_blocks(arrived, 1, blocks)

    if warp == WARPS:
        if lane == 0:
            for step in range(mine):
                i, slot, turn = place_backwards(step, mine, passing)
                ptx.mbarrier_wait(done, slot, turn % 2)
                ptx.tma_store(y_map, ((block + i * blocks) * LINES, 0), tiles, (slot, 0, 0))
                ptx.tma_store_commit()
                if step >= LAG and step - LAG + RING < passing:
                    ptx.tma_store_wait(LAG)
                    i, slot, turn = place_backwards(step - LAG + RING, mine, passing)
                    ptx.mbarrier_expect(landed, slot, TILE * 16)
                    ptx.tma_load(tiles, (slot, 0, 0), x_map, ((block + i * blocks) * LINES, 0), landed, slot)
            ptx.tma_store_wait(0)
    else:
        c = np.uint32(u % ACROSS * WIDTH)
        for e in range(WIDTH):
            near[e], total[e], squares[e] = mean[c + e], scales[c + e], bias[c + e]
        for step in range(group, mine, GROUPS):
            i, slot, turn = place_backwards(step, mine, passing)
            if RING <= step < passing:
                ptx.mbarrier_wait(landed, slot, (turn - 1) % 2)
            if u < active:
                for v in range(u, min(np.uint32(TILE), vectors - i * TILE), active):
                    line, word = v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % LINE_VECTORS) * 4
                    load_at(tiles, (slot, line, word), own)
                    for e in range(WIDTH):
                        own[e] = scaled(own[e], near[e], total[e], squares[e], relu)
                    store_at(tiles, (slot, line, word), own)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.mbarrier_arrive(done, slot)


class Geometry(NamedTuple):
    """How pixels lie on the chip: vectors of 16 bytes of a pixel, lines of 128 bytes of a tile, tiles of a block that
    stay, places of its ring, groups of its warps, and blocks."""

    across: int
    lines: int
    kept: int
    ring: int
    groups: int
    blocks: int

    @property
    def kept_lines(self) -> int:
        """Lines of a tile in shared memory, a multiple of eight."""
        return -(-self.lines // 8) * 8

    @property
    def kept_bytes(self) -> int:
        """Of a block."""
        return (self.kept + self.ring) * self.kept_lines * LINE_WORDS * 4


def geometry(problem, itemsize: int) -> Geometry:
    """Tiles are as large as they should be, or smaller where blocks then have as many; all that fit are kept.

    Raises
    ------
    TooLarge
        Pixels do not begin at multiples of 16 bytes, a pixel has more channels than a block has threads for, or no
        tile of whole pixels is of whole lines.
    """
    across, rest = divmod(problem.C * itemsize, 16)
    if rest:
        raise TooLarge(f"{problem.C} channels of {itemsize} bytes are no multiple of 16 bytes")
    all_vectors, unit = problem.values * across, lcm(across, LINE_VECTORS)
    if across > THREADS or unit > MOST_LINES * LINE_VECTORS or all_vectors % LINE_VECTORS:
        raise TooLarge(f"{problem.values} pixels of {problem.C} channels are no tiles of whole lines of 128 bytes")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    rounds = -(-all_vectors // (sms * max(MOST_VECTORS, unit)))
    units = min(-(-all_vectors // (sms * rounds * unit)), MOST_LINES * LINE_VECTORS // unit)
    vectors = units * unit  # of a tile
    found = Geometry(across, vectors // LINE_VECTORS, 0, 1, 1, min(sms, -(-all_vectors // vectors)))
    of_sums = (2 * THREADS + across) * 16 // itemsize * 4
    slots, tiles = (CHIP_BYTES - of_sums) // found.kept_bytes, -(-all_vectors // (vectors * found.blocks))
    groups = max(n for n in GROUPINGS if n * across <= THREADS and n < slots)
    ring = min(MOST_RING, slots - 1) // groups * groups if tiles > slots else 1
    return found._replace(kept=min(slots, tiles) - ring, ring=ring, groups=groups)


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    cut = geometry(problem, format.itemsize)
    maps = [ptx.TensorMap(_in_lines(X, problem, format), (cut.lines, LINE_WORDS)) for X in (x, y)]
    partials = workspace.array("partials", (FIELDS, problem.C, cut.blocks), np.float32)
    kept = mean, variance, running_mean, running_variance, partials, workspace.array("scales", (problem.C,), np.float32)
    numbers = np.uint32(problem.values), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    arguments = *maps, weight, bias, *kept, workspace.counters(2), *numbers
    return [Launch(specialise_for(first_kept, cut, format), cut.blocks, THREADS + LANES, arguments, cut.kept_bytes)]


def _in_lines(X, problem, format):
    """Images as lines of 128 bytes: of float32, or of words of two bfloat16."""
    X = reshaped(X, problem.values * problem.C * format.itemsize // 128, 128 // format.itemsize)
    return X if X.dtype == np.float32 else as_words(X)


@lru_cache(128)  # a kernel for many a size of images
def specialise_for(kernel, cut: Geometry, format):
    """The kernel's copy for these tiles, and for bits of bfloat16."""
    constants = {
        "ACROSS": cut.across,
        "LINES": cut.lines,
        "KEPT_LINES": cut.kept_lines,
        "TILE": cut.lines * LINE_VECTORS,
        "KEPT": cut.kept,
        "RING": cut.ring,
        "SLOTS": cut.kept + cut.ring,
        "SHARE": -(-cut.blocks // LANES),
        "GROUPS": cut.groups,
        "GROUP_THREADS": THREADS // cut.groups,
    }
    if format is BF16:
        constants |= {"WIDTH": 8, "ELEMENT": np.uint32}
    return specialise(kernel, **constants)
