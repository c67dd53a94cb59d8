"""Tile sizes of blocks, with two rows of warps and 4, 2 or 1 columns, and their predicted times."""

from typing import NamedTuple

from labkit import cuda
from labkit.conv.problem import Convolution

WN = 64  # columns of a warp
WARPS_Y = 2  # rows of warps
PAIRS = 4  # pairs of warps that an SM runs at once
SPEED = {64: 1.0, 48: 0.95, 32: 0.85}  # relative rate of multiply-adds, by the rows of a warp
SM_SHARE = 0.78  # of an SM's peak rate that a block reaches
ADD_US, CLOCK_GHZ, BYTES_PER_US = 3, 1.755, 3e6  # of the launch that adds parts; of an H100; of a copy
STEP = 32  # terms of a sum per iteration of a block
NONE, BITS, COMPARING = range(3)  # how a copy tests that its pixel is inside the image


class Tiling(NamedTuple):
    """The rows of a warp, and the pairs of warps of a block."""

    rows: int
    pairs: int

    @property
    def tile(self) -> tuple[int, int]:
        return WARPS_Y * self.rows, WN * self.pairs


TILINGS = tuple(Tiling(rows, pairs) for rows in SPEED for pairs in (4, 2, 1))


def best_tiling(rows: int, cols: int, groups: int = 1) -> Tiling:
    """Return the tiling for `groups` products of rows x cols that wastes least of this GPU's SMs."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    return min(TILINGS, key=lambda tiling: estimate_cycles(tiling, rows, cols, groups, sms))


def best_split(rows: int, cols: int, depth: int, groups: int = 1, limit_bytes: int | None = None) -> tuple[Tiling, int]:
    """Return the tiling and the number of parts of each sum with the least predicted time.

    `groups` products of rows x cols have `depth` terms per sum; several parts use at most `limit_bytes` of workspace.
    """
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    max_parts = depth if limit_bytes is None else limit_bytes // (4 * rows * cols * groups)

    def time_us(choice):
        tiling, parts = choice
        terms = -(-depth // (STEP * parts)) * STEP + 2 * STEP  # with the start and end of a block
        product_us = estimate_cycles(tiling, rows, cols, groups * parts, sms) * terms / SM_SHARE / CLOCK_GHZ / 1e3
        moved_bytes = 4 * rows * cols * groups * (2 * parts + 1)
        return product_us + (ADD_US + moved_bytes / BYTES_PER_US if parts > 1 else 0)

    powers = {int(1.1**n) for n in range(66)}  # 1 to 490, a tenth apart
    counts = sorted({1, *(count for count in powers if count * 4 * STEP <= depth and count <= max_parts)})
    return min(((tiling, parts) for parts in counts for tiling in TILINGS), key=time_us)


def estimate_cycles(tiling: Tiling, rows: int, cols: int, groups: int, sms: int) -> float:
    """Return the predicted cycles of an SM per term of the sums, for all blocks that it computes."""
    height, width = tiling.tile
    blocks = -(-groups * -(-rows // height) * -(-cols // width) // sms)
    resident = min(blocks * tiling.pairs, PAIRS)  # pairs of warps; fewer than PAIRS are slower
    return blocks * height * width / 64 / SPEED[tiling.rows] / (1 + resident / PAIRS)


def choose_border_test(problem: Convolution) -> int:
    """Return the test by which copies find pixels outside the image."""
    if not any((problem.top, problem.bottom, problem.left, problem.right)):
        return NONE
    return BITS if problem.R * problem.S <= 32 else COMPARING
