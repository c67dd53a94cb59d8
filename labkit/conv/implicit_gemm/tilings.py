"""How a product is cut up between blocks: two rows of warps in each, and 4, 2 or 1 columns of them."""

from typing import NamedTuple

from labkit import cuda

WN = 64  # columns of a warp
WARPS_Y = 2  # rows of warps
PAIRS = 4  # of warps that an SM holds
SPEED = {64: 1.0, 48: 0.95, 32: 0.85}  # reckoned, of a warp that has so many rows


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


def best_tiling(rows: int, cols: int, groups: int = 1) -> Tiling:
    """The tiling of so many products of rows x cols that wastes least of this GPU's SMs."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT

    def time(tiling):
        height, width = tiling.tile
        in_turn = -(-groups * -(-rows // height) * -(-cols // width) // sms)  # blocks that an SM computes
        at_once = min(in_turn * tiling.pairs, PAIRS)  # pairs, of which it needs all to be as fast as it can
        return in_turn * height * width / SPEED[tiling.rows] / (1 + at_once / PAIRS)

    return min(TILINGS, key=time)
