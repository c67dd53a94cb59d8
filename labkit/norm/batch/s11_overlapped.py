"""Clusters go from channel to channel: a warp stores its piece, and fetches the next channel's into the same place.

As many clusters are launched as may run at once, and each takes channel after channel, the next that nobody has taken:
how many fit depends on how many SMs lie side by side, which differs from one H100 to the next. A warp owns a piece of a
channel, about 12 KB, and nobody else reads or writes there. The copy engine brings the piece, and the warp sums it as
soon as it is there; it scales it where it lies, and the copy engine takes it from there to memory. Then the warp asks
for its piece of the next channel. So memory is read and written at the same time, as in a copy, and no thread computes
an address.
Between the two uses all warps of a cluster tell one another what they found. That has two places, for one channel after
the other, so that a barrier for each channel is enough. Two blocks fit into an SM, and while one waits for its cluster
the other keeps the memory busy.

Costs, in passes over memory, each of them all values read or written once:

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
from labkit.arrays.views import as_words, reshaped
from labkit.formats import BF16, FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.batch import TAKES
from labkit.norm.pieces import rescale, sums
from labkit.parts.moments import ROWS, merge_moments, warp_moments

FORMATS = FP32, BF16
EXAMPLES = (
    (1, 1, 4, 8),
    (3, 5, 8, 8, False, "NCHW", None, 3, 0.1),
    (70, 2, 16, 10),
    (6, 3, 16, 20, True, "NCHW", 0.1, 0, 1e-5, True),
    (2, 300, 8, 8),
)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112)
LARGEST = (251, 1, 8, 8), (223, 1, 8, 8), (191, 1, 8, 8)
STANDING = 8, 8, 32, 32
LANES = 32  # of a warp, and words of a row that the copy engine moves
ROW_BYTES = 4 * LANES
CLUSTER = 8  # blocks that share a channel
PIECES = 8  # of a block, one for each of its warps
PARTS = CLUSTER * PIECES
BOX_IMAGES, BOX_ROWS = 1, 98  # of a piece
KEPT_ROWS = 104  # that a piece takes in shared memory, where pieces begin at multiples of 1024 bytes
ELEMENT = np.float32  # what a row holds, or words of two bfloat16
SIZES = 1, 2, 4, 8
MOST_ROWS = 104
MOST_PIECES, MOST_IN_SM = 32, 4  # of a block, and blocks
FREE_PIECES = {FP32: 24, BF16: 28}  # of a block, for whose threads 80 or 72 registers are left
HALF_BYTES, MOST_BYTES = 106 * 1024, 212 * 1024  # of a block, where two or one fit into an SM
ALL = 0xFFFFFFFF


@cuda.jit(cluster=CLUSTER)
def overlapped(
    x_map, y_map, weight, bias, mean, variance, running_mean, running_variance, taken, images, rows, eps, factor, relu
):
    tiles = ptx.shared_array(0, (PIECES, KEPT_ROWS, LANES), ELEMENT)
    parts = cuda.shared.array((2, ROWS, PARTS), np.float32)
    following = cuda.shared.array(2, np.uint32)  # the next channel
    landed = cuda.shared.array(PIECES, np.uint64)
    lane, warp, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y), np.uint32(ptx.cluster_rank())
    channels = np.uint32(weight.shape[0])
    takes = np.uint32(channels + cuda.gridDim.x // CLUSTER)  # of all clusters: each finds none left once
    piece = np.uint32(rank * PIECES + warp)
    boxes = np.uint32(rows // BOX_ROWS)  # of a plane
    image, row = np.uint32(piece // boxes * BOX_IMAGES), np.uint32(piece % boxes * BOX_ROWS)
    has_piece = image < images
    if lane == 0:
        ptx.mbarrier_init(landed, warp, 1)
        ptx.mbarrier_init_fence()
    ptx.cluster_sync()
    if piece == 0 and lane == 0:
        following[0] = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        for block in range(1, CLUSTER):
            ptx.cluster_store(following, 0, block, following[0])
    ptx.cluster_sync()
    c = following[0]
    if c < channels and has_piece and lane == 0:
        ptx.mbarrier_expect(landed, warp, BOX_IMAGES * BOX_ROWS * ROW_BYTES)
        ptx.tma_load(tiles, (warp, 0, 0), x_map, (image, c, row, 0), landed, warp)

    turn = np.uint32(0)
    while c < channels:
        after = np.uint32(0)
        if piece == 0 and lane == 0:
            after = cuda.atomic.inc(taken, 0, takes - np.uint32(1))
        values = average = rest = squares = np.float32(0)
        if has_piece:
            ptx.mbarrier_wait(landed, warp, turn % 2)
            values, average, rest, squares = sums(tiles, warp, lane, BOX_IMAGES * BOX_ROWS)
        values, average, rest, squares = warp_moments(values, average, rest, squares)
        values, average = cuda.shfl_sync(ALL, values, 0), cuda.shfl_sync(ALL, average, 0)
        rest, squares = cuda.shfl_sync(ALL, rest, 0), cuda.shfl_sync(ALL, squares, 0)
        if lane < CLUSTER:
            ptx.cluster_store(parts, (turn % 2, 0, piece), lane, values)
            ptx.cluster_store(parts, (turn % 2, 1, piece), lane, average)
            ptx.cluster_store(parts, (turn % 2, 2, piece), lane, rest)
            ptx.cluster_store(parts, (turn % 2, 3, piece), lane, squares)
        if piece == 0 and lane == 0:
            for block in range(CLUSTER):
                ptx.cluster_store(following, (turn + 1) % 2, block, after)
        ptx.cluster_sync()

        values = average = rest = squares = np.float32(0)
        for other in range(lane, PARTS, LANES):
            n, m = parts[turn % 2, 0, other], parts[turn % 2, 1, other]
            r, s = parts[turn % 2, 2, other], parts[turn % 2, 3, other]
            values, average, rest, squares = merge_moments(values, average, rest, squares, n, m, r, s)
        values, average, rest, squares = warp_moments(values, average, rest, squares)
        centre, scale = average + rest, weight[c] / sqrt(squares / values + eps)
        if piece == 0 and lane == 0:
            mean[c] = centre
            variance[c] = squares / values
            keep = np.float32(1) - factor
            running_mean[c] = keep * running_mean[c] + factor * centre
            running_variance[c] = keep * running_variance[c] + factor * squares / (values - np.float32(1))
        centre, scale = cuda.shfl_sync(ALL, centre, 0), cuda.shfl_sync(ALL, scale, 0)

        if has_piece:
            rescale(tiles, warp, lane, BOX_IMAGES * BOX_ROWS, centre, scale, bias[c], relu)
            ptx.fence_async()
            cuda.syncwarp()
            if lane == 0:
                ptx.tma_store(y_map, (image, c, row, 0), tiles, (warp, 0, 0))
                ptx.tma_store_commit()
                if following[(turn + 1) % 2] < channels:
                    ptx.tma_store_wait(0)
                    ptx.mbarrier_expect(landed, warp, BOX_IMAGES * BOX_ROWS * ROW_BYTES)
                    ptx.tma_load(tiles, (warp, 0, 0), x_map, (image, following[(turn + 1) % 2], row, 0), landed, warp)
        cuda.syncwarp()
        turn += np.uint32(1)
        c = following[turn % 2]
    if has_piece and lane == 0:
        ptx.tma_store_wait(0)


class Geometry(NamedTuple):
    """How channels lie in clusters: of how many images and rows of 128 bytes a piece is, how many pieces a block keeps,
    how many blocks a cluster has, and how many clusters there are."""

    box_images: int
    box_rows: int
    pieces: int
    blocks: int
    clusters: int

    @property
    def kept_rows(self) -> int:
        """Rows of a piece in shared memory, a multiple of eight."""
        return -(-self.box_images * self.box_rows // 8) * 8

    @property
    def kept_bytes(self) -> int:
        """Of a block."""
        return self.pieces * self.kept_rows * ROW_BYTES


def geometry(problem, itemsize: int) -> Geometry:
    """Clusters are as small as leaves two blocks in each SM, and as many as run at once.

    Raises
    ------
    TooLarge
        Planes are no rows of 128 bytes, or a channel has more values than a cluster keeps.
    """
    rows, rest = divmod(problem.H * problem.W * itemsize, ROW_BYTES)
    if rest:
        raise TooLarge(f"planes of {problem.H} x {problem.W} pixels are no rows of 128 bytes")
    box_rows = _divisor(rows, MOST_ROWS)
    box_images = _divisor(problem.N, MOST_ROWS // box_rows)
    boxes = problem.N // box_images * (rows // box_rows)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for blocks in SIZES:
        found = Geometry(box_images, box_rows, -(-boxes // blocks), blocks, 1)
        if found.pieces <= MOST_PIECES // 2 and found.kept_bytes <= HALF_BYTES and problem.C * blocks >= 2 * sms:
            break
    if found.kept_bytes > MOST_BYTES or found.pieces > MOST_PIECES:
        raise TooLarge(f"a channel has {boxes} pieces of {box_images * box_rows} rows of 128 bytes, beyond a cluster")
    in_sm = min(2 * HALF_BYTES // found.kept_bytes, 2 * MOST_PIECES // found.pieces, MOST_IN_SM)
    return found._replace(clusters=min(problem.C, in_sm * (sms // blocks)))


def _divisor(number, most):
    """The largest divisor of a number that is not above `most`."""
    return max(n for n in range(1, min(number, most) + 1) if number % n == 0)


def launches(x, weight, bias, y, mean, variance, running_mean, running_variance, problem, workspace, format=FP32):
    """y, the statistics of the batch, and the running ones, of images in NCHW."""
    arrays = x, weight, bias, y, mean, variance, running_mean, running_variance
    problem.check(*arrays, takes=TAKES, dtype=format.dtype)
    cut = geometry(problem, format.itemsize)
    rows = problem.H * problem.W * format.itemsize // ROW_BYTES
    sides = problem.N, problem.C, rows, ROW_BYTES // format.itemsize
    box = cut.box_images, 1, cut.box_rows, LANES
    maps = [ptx.TensorMap(_in_rows(X, sides), box) for X in (x, y)]
    numbers = np.uint32(problem.N), np.uint32(rows), np.float32(problem.eps), np.float32(problem.factor), problem.relu
    kept = mean, variance, running_mean, running_variance, workspace.counters(1)
    arguments = *maps, weight, bias, *kept, *numbers
    grid, block = cut.blocks * cut.clusters, (LANES, cut.pieces)
    return [Launch(specialise_for(overlapped, cut, format), grid, block, arguments, cut.kept_bytes)]


def _in_rows(X, sides):
    """Images as rows of 128 bytes: of float32, or of words of two bfloat16."""
    X = reshaped(X, *sides)
    return X if X.dtype == np.float32 else as_words(X)


@lru_cache(128)  # a kernel for many a size of images
def specialise_for(kernel, cut: Geometry, format):
    """The kernel's copy for these pieces and clusters, and for bits of bfloat16."""
    constants = {
        "CLUSTER": cut.blocks,
        "PIECES": cut.pieces,
        "BOX_IMAGES": cut.box_images,
        "BOX_ROWS": cut.box_rows,
        "KEPT_ROWS": cut.kept_rows,
    }
    if format is BF16:
        constants |= {"ELEMENT": np.uint32, "WIDTH": 8}
    bounds = LANES * cut.pieces if cut.pieces > FREE_PIECES[format] else None
    return specialise(cuda.jit(cluster=cut.blocks, launch_bounds=bounds)(kernel.py_func), **constants)
