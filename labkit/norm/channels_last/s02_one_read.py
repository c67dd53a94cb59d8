"""Some channels stay on the chip between their two uses, all pixels of them, and blocks meet to tell what they found.

In NHWC a channel's values lie a whole pixel apart, and memory gives 32 bytes at least. So a group of blocks takes as
many channels as 64 bytes hold, of all pixels: 13 MB of a batch of 64 images of 56 x 56 pixels, 0.1 MB in each of 132
blocks. Two blocks fit into an SM. They are of two groups, and while one waits for the others of its group the other
keeps the memory busy. A warp owns a piece, some pixels. The copy engine brings it; the warp sums each channel; the
blocks of a group leave their sums in memory, meet, and each merges them all; the warp scales its piece where it lies,
stores it, and asks for the same pixels of the next channels.

Costs, in passes over memory, each of them all values read or written once:

    2       one_read: read, written
    2       passes in all

Limited by the time in which blocks meet: each word from one to another waits in the same queues as all that they read
and write, and five of these waits follow one another.

Parts: `sync_blocks` of `labkit.parts.meeting`; `merge_moments`, `warp_moments` of `labkit.parts.moments`; `load_at`,
`store_at` of `labkit.parts.vectors`.
"""

from functools import lru_cache
from math import sqrt
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
    (2, 8, 3, 5, True, "NHWC"),
    (3, 16, 8, 9, False, "NHWC", None, 3, 0.1),
    (6, 24, 20, 10, True, "NHWC", 0.1, 0, 1e-5, True),
    (1, 528, 4, 5, True, "NHWC"),
    (5, 40, 12, 15, True, "NHWC"),
)
BENCHED = (64, 256, 56, 56, True, "NHWC"), (32, 64, 112, 112, True, "NHWC"), (32, 512, 7, 7, True, "NHWC")
LANES, LINE_WORDS, LINE_VECTORS = 32, 32, 8  # of a warp; and of 128 bytes
FIELDS = 3  # that a block leaves in memory: the mean in two floats, and squares
WIDTH = 4  # channels of a lane: 16 bytes
ELEMENT = np.float32  # what memory holds, or words of two bfloat16
VECTORS = 4  # of a row of a piece
CHANNELS = WIDTH * VECTORS
PIECES = 8  # of a block, one for each of its warps
PER_WARP = -(-CHANNELS // PIECES)  # channels whose sums a warp merges
BOX_PIXELS = 192  # of a piece
LINES = BOX_PIXELS * VECTORS // LINE_VECTORS
GROUPS = 2
SHARE = 5  # of the blocks of a group, that a lane merges
NEAR = 4  # pixels, at the beginning of a block's first piece, whose mean is taken away from all of its values
LEAST_PIECES, MOST_PIECES, MOST_BOX_PIXELS = 4, 8, 256
TILE_BYTES = 1024  # at multiples of which pieces begin
KEPT_BYTES = {2: 104 * 1024, 1: 208 * 1024}  # of a block, by how many of them fit into an SM
ALL = 0xFFFFFFFF


@cuda.jit(cooperative=True, launch_bounds=(256, 2))
def one_read(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, partials, arrived, pixels, eps, factor,
    relu,
):  # fmt: skip
    tiles = ptx.shared_array(0, (PIECES, LINES, LINE_WORDS), ELEMENT)
    landed = cuda.shared.array(PIECES, np.uint64)
    of_warps = cuda.shared.array((2, PIECES, CHANNELS), np.float32)
    nears = cuda.shared.array(CHANNELS, np.float32)
    centres = cuda.shared.array(CHANNELS, np.float32)
    scales = cuda.shared.array(CHANNELS, np.float32)
    own = cuda.local.array(WIDTH, np.float32)
    near = cuda.local.array(WIDTH, np.float32)
    total = cuda.local.array(WIDTH, np.float32)
    squares = cuda.local.array(WIDTH, np.float32)
    theirs = cuda.local.array((PER_WARP, FIELDS, SHARE), np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    group, block = np.uint32(cuda.blockIdx.x % GROUPS), np.uint32(cuda.blockIdx.x // GROUPS)
    blocks, channels = np.uint32(cuda.gridDim.x // GROUPS), np.uint32(weight.shape[0])
    begin = np.uint32(block * PIECES * BOX_PIXELS)  # of the block's pixels
    pixel = np.uint32(begin + warp * BOX_PIXELS)
    count = np.uint32(min(BOX_PIXELS, max(pixels, pixel) - pixel))
    block_count = np.uint32(min(PIECES * BOX_PIXELS, max(pixels, begin) - begin))
    first = np.uint32(lane % VECTORS * WIDTH)  # of the lane's channels
    part_of_near = np.float32(1) / np.float32(max(np.uint32(1), min(np.uint32(NEAR), block_count)))
    words = np.uint32(CHANNELS * LINE_WORDS // (WIDTH * LINE_VECTORS))  # of a row of a piece
    if lane == 0:
        ptx.mbarrier_init(landed, warp, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if count > 0 and lane == 0:
        ptx.mbarrier_expect(landed, warp, BOX_PIXELS * VECTORS * 16)
        ptx.tma_load(tiles, (warp, 0, 0), x_map, (pixel, group * words), landed, warp)

    turn = np.uint32(0)
    for part in range(group, (channels + CHANNELS - 1) // CHANNELS, GROUPS):
        c = np.uint32(part * CHANNELS)
        for e in range(WIDTH):
            near[e] = total[e] = squares[e] = np.float32(0)
        if block_count > 0:
            ptx.mbarrier_wait(landed, 0, turn % 2)
            for p in range(min(NEAR, block_count)):
                v = np.uint32(p * VECTORS + lane % VECTORS)
                load_at(tiles, (0, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4), own)
                for e in range(WIDTH):
                    near[e] += own[e] * part_of_near
        if count > 0:
            ptx.mbarrier_wait(landed, warp, turn % 2)
            for v in range(lane, count * VECTORS, LANES):
                load_at(tiles, (warp, v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4), own)
                for e in range(WIDTH):
                    value = own[e] - near[e]
                    total[e] += value
                    squares[e] += value * value
        for e in range(WIDTH):
            away = LANES // 2
            while away >= VECTORS:
                total[e] += cuda.shfl_down_sync(ALL, total[e], away)
                squares[e] += cuda.shfl_down_sync(ALL, squares[e], away)
                away //= 2
            if lane < VECTORS:
                of_warps[0, warp, first + e], of_warps[1, warp, first + e] = total[e], squares[e]
            if warp == 0 and lane < VECTORS:
                nears[first + e] = near[e]
        cuda.syncthreads()
        if warp == 0:
            for channel in range(lane, min(np.uint32(CHANNELS), channels - c), LANES):
                all_total = all_squares = np.float32(0)
                for other in range(PIECES):
                    all_total += of_warps[0, other, channel]
                    all_squares += of_warps[1, other, channel]
                rest = all_total / np.float32(max(np.uint32(1), block_count))
                partials[0, c + channel, block], partials[1, c + channel, block] = nears[channel], rest
                partials[2, c + channel, block] = all_squares - all_total * rest
        sync_blocks(arrived, part, blocks)

        for mine in range(PER_WARP):
            channel = c + min(np.uint32(warp + mine * PIECES), min(np.uint32(CHANNELS), channels - c) - np.uint32(1))
            for step in range(SHARE):
                other = min(np.uint32(lane + step * LANES), np.uint32(blocks - 1))
                for field in range(FIELDS):
                    theirs[mine, field, step] = partials[field, channel, other]
        for mine in range(PER_WARP):
            channel = np.uint32(warp + mine * PIECES)
            values = average = rest = deviations = np.float32(0)
            for step in range(SHARE):
                there = np.uint32((lane + step * LANES) * PIECES * BOX_PIXELS)
                n = np.float32(min(np.uint32(PIECES * BOX_PIXELS), max(pixels, there) - there))
                s = theirs[mine, 2, step] if n > np.float32(0) else np.float32(0)
                m, r = theirs[mine, 0, step], theirs[mine, 1, step]
                values, average, rest, deviations = merge_moments(values, average, rest, deviations, n, m, r, s)
            values, average, rest, deviations = warp_moments(values, average, rest, deviations)
            if lane == 0 and channel < CHANNELS and c + channel < channels:
                centre = average + rest
                centres[channel], scales[channel] = centre, weight[c + channel] / sqrt(deviations / values + eps)
                if block == 0:
                    mean[c + channel] = centre
                    variance[c + channel] = deviations / values
                    unbiased, keep = deviations / (values - np.float32(1)), np.float32(1) - factor
                    running_mean[c + channel] = keep * running_mean[c + channel] + factor * centre
                    running_variance[c + channel] = keep * running_variance[c + channel] + factor * unbiased
        cuda.syncthreads()

        if count > 0:
            for e in range(WIDTH):
                channel = np.uint32(min(c + first + e, channels - np.uint32(1)))
                near[e], total[e], squares[e] = centres[channel - c], scales[channel - c], bias[channel]
            for v in range(lane, count * VECTORS, LANES):
                line, word = v // LINE_VECTORS, (v % LINE_VECTORS ^ v // LINE_VECTORS % VECTORS) * 4
                load_at(tiles, (warp, line, word), own)
                for e in range(WIDTH):
                    own[e] = scaled(own[e], near[e], total[e], squares[e], relu)
                store_at(tiles, (warp, line, word), own)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.tma_store(y_map, (pixel, part * words), tiles, (warp, 0, 0))
                ptx.tma_store_commit()
                ptx.tma_store_wait(0)
                if c + GROUPS * CHANNELS < channels:
                    ptx.mbarrier_expect(landed, warp, BOX_PIXELS * VECTORS * 16)
                    ptx.tma_load(tiles, (warp, 0, 0), x_map, (pixel, (part + GROUPS) * words), landed, warp)
        turn += np.uint32(1)


class Geometry(NamedTuple):
    """How pixels lie in blocks: vectors of 16 bytes of a pixel that a group takes at once, pixels of a piece, pieces of
    a block, blocks of a group, and groups."""

    vectors: int
    box_pixels: int
    pieces: int
    blocks: int
    groups: int

    @property
    def kept_bytes(self) -> int:
        """Of a block."""
        return self.pieces * self.box_pixels * self.vectors * 16


def geometry(problem, itemsize: int) -> Geometry:
    """Rows as long as leave two groups that run at once, or one; but 32 bytes only if there is no other way.

    Raises
    ------
    TooLarge
        Pixels do not begin at multiples of 16 bytes, or there are too many of them.
    """
    if problem.C * itemsize % 16:
        raise TooLarge(f"{problem.C} channels of {itemsize} bytes are no multiple of 16 bytes")
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for vectors, in_sm, least in (
        (8, 2, 2),
        (4, 2, 2),
        (8, 1, 1),
        (8, 2, 1),
        (4, 2, 1),
        (4, 1, 1),
        (2, 2, 1),
        (2, 1, 1),
    ):
        parts = -(-problem.C * itemsize // (vectors * 16))
        if found := _cut(problem.values, vectors, parts, KEPT_BYTES[in_sm], sms * in_sm, min(least, parts)):
            return found
    raise TooLarge(f"{problem.values} pixels are more than this GPU keeps of any channel")


def _cut(pixels, vectors, parts, kept_bytes, most_blocks, least):
    """The cut for rows of so many vectors, where at least so many groups fit; else None."""
    apart = TILE_BYTES // (vectors * 16)  # pieces have a multiple of so many pixels
    needed = -(-pixels * vectors * 16 // kept_bytes)
    groups = min(parts, most_blocks // needed)
    if groups < least:
        return None
    blocks = min(most_blocks // groups, -(-pixels // (LEAST_PIECES * apart)))
    each = -(-pixels // blocks)
    pieces = min(MOST_PIECES, -(-each // apart))
    box_pixels = -(-each // (pieces * apart)) * apart
    found = Geometry(vectors, box_pixels, pieces, -(-pixels // (pieces * box_pixels)), groups)
    return found if found.kept_bytes <= kept_bytes and box_pixels <= MOST_BOX_PIXELS else None


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NHWC."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    cut = geometry(problem, format.itemsize)
    maps = [ptx.TensorMap(_in_rows(X, problem), (cut.box_pixels, cut.vectors * 4)) for X in (x, y)]
    partials = workspace.array("partials", (FIELDS, problem.C, cut.blocks), np.float32)
    arrived = workspace.counters(-(-problem.C * format.itemsize // (cut.vectors * 16)))
    numbers = np.uint32(problem.values), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    kept = weight, bias, mean, variance, running_mean, running_variance, partials, arrived
    grid, block = cut.blocks * cut.groups, (LANES, cut.pieces)
    return [Launch(specialise_for(one_read, cut, format), grid, block, (*maps, *kept, *numbers), cut.kept_bytes)]


def _in_rows(X, problem):
    """Images as a matrix of a row for each pixel: of float32, or of words of two bfloat16."""
    X = reshaped(X, problem.values, problem.C)
    return X if X.dtype == np.float32 else as_words(X)


@lru_cache(128)  # a kernel for many a size of images
def specialise_for(kernel, cut: Geometry, format):
    """The kernel's copy for these pieces and groups, and for bits of bfloat16."""
    constants = {"VECTORS": cut.vectors, "BOX_PIXELS": cut.box_pixels, "PIECES": cut.pieces, "GROUPS": cut.groups}
    constants["SHARE"] = -(-cut.blocks // LANES)
    if format is BF16:
        constants |= {"WIDTH": 8, "ELEMENT": np.uint32}
    return specialise(kernel, **constants)
