"""How a product is cut up between blocks: two rows of warps in each, and 4, 2 or 1 columns of them."""

from typing import NamedTuple

from labkit import cuda

WN = 64  # columns of a warp
WARPS_Y = 2  # rows of warps
PAIRS = 4  # of warps that an SM holds
SPEED = {64: 1.0, 48: 0.95, 32: 0.85}  # predicted, of a warp that has so many rows


class Tiling(NamedTuple):
    """What a warp and a block compute: `rows` of a warp, and so many `pairs` of warps."""

    rows: int
    pairs: int

    @property
    def tile(self) -> tuple[int, int]:
        return WARPS_Y * self.rows, WN * self.pairs

    @property
    def threads(self) -> int:
        return 32 * WARPS_Y * self.pairs


TILINGS = tuple(Tiling(rows, pairs) for rows in SPEED for pairs in (4, 2, 1))


SHARE = 0.78  # of the multiply-adds that an SM could do, which a block does
ADDING_US, CLOCK_GHZ, BYTES_US = 3, 1.755, 3e6  # of the launch that adds parts up; of an H100; by a copy
STEP = 32  # of a sum, which a block takes at a time


def best_tiling(rows: int, cols: int, groups: int = 1) -> Tiling:
    """The tiling of so many products of rows x cols that wastes least of this GPU's SMs."""
    return min(TILINGS, key=lambda tiling: cycles(tiling, rows, cols, groups))


def best_parts(rows: int, cols: int, depth: int, groups: int = 1, limit_bytes: int | None = None) -> tuple[Tiling, int]:
    """The tiling of such products, and the parts of their sums of so many terms, that may take least time.

    Parts together take the limit at most, unless there is but one.
    """
    most = depth if limit_bytes is None else limit_bytes // (4 * rows * cols * groups)

    def time_us(way):
        tiling, parts = way
        each = -(-depth // (STEP * parts)) * STEP + 2 * STEP  # and what a block does besides
        multiplying = cycles(tiling, rows, cols, groups * parts) * each / SHARE / CLOCK_GHZ / 1e3
        moved_bytes = 4 * rows * cols * groups * (2 * parts + 1)
        return multiplying + (ADDING_US + moved_bytes / BYTES_US if parts > 1 else 0)

    some = {int(1.1**n) for n in range(66)}
    counts = sorted({1, *(count for count in some if count * 4 * STEP <= depth and count <= most)})
    return min(((tiling, parts) for parts in counts for tiling in TILINGS), key=time_us)


def cycles(tiling: Tiling, rows: int, cols: int, groups: int) -> float:
    """About how many cycles a term of the sums takes of an SM, for the blocks that it computes one after the other."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    height, width = tiling.tile
    in_turn = -(-groups * -(-rows // height) * -(-cols // width) // sms)
    at_once = min(in_turn * tiling.pairs, PAIRS)  # pairs of warps, of which it needs all to be as fast as it can
    return in_turn * height * width / 64 / SPEED[tiling.rows] / (1 + at_once / PAIRS)
