"""How a product is cut up into the work of blocks, and how long a way of cutting it may take."""

from functools import lru_cache
from itertools import product
from math import ceil
from typing import NamedTuple

from labkit.gemm.library.constants import MN_ROWS

SHARED_BYTES = 227 * 1024  # that a block can have on compute capability 9.0
BARRIER_BYTES = 1024  # of them for barriers, and to begin at a multiple of 1024
STEP_BYTES = 128  # of a row, that a stage holds
MOST_STAGES = 16
SPLITS = 1, 2, 3, 4, 6, 8
LEAST_COLS = 64  # of a tile whose result goes out by the copy engine

# What an H100 takes, in cycles of an SM, fitted to measured times.
START_CYCLES = 3800  # until the first tile is there
STEP_CYCLES = 40  # beside the multiply-adds of a step along k
MULTIPLIED = 32  # outputs of a tile that a cycle takes a step along k
L2_BYTES = 70  # that reach an SM in a cycle
DRAM_BYTES = 1700  # that reach all of them
STORED = 8  # outputs that leave a block in a cycle
PART_BYTES = 16  # of a part's sums that a block writes or reads in a cycle


class Tiling(NamedTuple):
    """How a product is cut up.

    rows, cols: of a block's tile. stages: of its ring. splits: parts along k, in which as many blocks share a tile.
    swapped: whether rows of the tile are B's, and columns A's.
    """

    rows: int
    cols: int
    stages: int
    splits: int = 1
    swapped: bool = False


class Work(NamedTuple):
    """An M x N result, with rows of operands of so many bytes along k, so many times over."""

    M: int
    N: int
    row_bytes: int
    batches: int = 1


def tilings(work: Work, sms: int, width: int = 8) -> list[Tiling]:
    """The tilings worth a trial on a GPU of so many SMs, the most promising first: for each kind of tile the best.

    The columns of a tile are a multiple of the width.
    """
    widths = range(LEAST_COLS, 257, width)
    found = [_tiling(*each, False) for each in product((64, 128), widths, SPLITS)]
    few = {ceil(work.M / n / width) * width for n in (1, 2, 4)}
    found += [_tiling(*each, True) for each in product((64, 128), (n for n in few if n <= 64), SPLITS)]
    by_kind = {}
    for tiling in sorted(found, key=lambda tiling: estimate(tiling, work, sms)):
        kind = tiling.rows, tiling.cols // 32, min(tiling.splits, 3), tiling.swapped
        by_kind.setdefault(kind, tiling)
    return list(by_kind.values())


@lru_cache(1024)  # products
def in_boxes(tiling: Tiling, work: Work, sms: int, copied_bytes: int) -> Tiling:
    """The tiling, or one of whole boxes of columns if that may take less than a copy of so many bytes and the tiling.

    It is for an operand whose memory runs along its rows. Boxes of 64 rows that begin anywhere take two lines of 128
    bytes a piece: with tiles of 200 columns a product of 8192 cubed was seen to take 2.4 times as long.
    """
    if tiling.cols % MN_ROWS == 0:
        return tiling
    whole = tilings(work, sms, MN_ROWS)[0]
    copying = START_CYCLES + 2 * copied_bytes / DRAM_BYTES
    return whole if estimate(whole, work, sms) < copying + estimate(tiling, work, sms) else tiling


def check_tiling(tiling: Tiling) -> None:
    """Raises ValueError where the kernel cannot cut a product up like that."""
    least = 8 if tiling.swapped else LEAST_COLS
    cols = range(least, 257, 8)
    if tiling.rows not in (64, 128) or tiling.cols not in cols or tiling.stages < 2 or tiling.splits < 1:
        raise ValueError(
            f"{tiling} is no tiling: it has 64 or 128 rows, {least} to 256 columns in steps of 8, and at least two "
            "stages and one split"
        )


def estimate(tiling: Tiling, work: Work, sms: int) -> float:
    """Cycles that a product may take by a tiling."""
    rows, cols = (work.N, work.M) if tiling.swapped else (work.M, work.N)
    tiles = ceil(rows / tiling.rows) * ceil(cols / tiling.cols) * work.batches
    waves = ceil(tiles * tiling.splits / sms)
    steps = ceil(work.row_bytes / STEP_BYTES / tiling.splits)
    outputs = tiling.rows * tiling.cols
    step = max(outputs / MULTIPLIED + STEP_CYCLES, (tiling.rows + tiling.cols) * STEP_BYTES / L2_BYTES)
    adding = outputs * 4 * (1 + tiling.splits) / PART_BYTES if tiling.splits > 1 else 0
    reading = (work.M + work.N) * work.row_bytes * work.batches / DRAM_BYTES
    return START_CYCLES + max(reading, waves * steps * step) + waves * (outputs / STORED + adding)


def most_stages(rows: int, cols: int) -> int:
    """As many as shared memory holds of such tiles, beside two boxes of each warpgroup's results."""
    room = SHARED_BYTES - BARRIER_BYTES - 2 * rows * STEP_BYTES
    return min(room // ((rows + cols) * STEP_BYTES), MOST_STAGES)


def _tiling(rows, cols, splits, swapped):
    return Tiling(rows, cols, most_stages(rows, cols), splits, swapped)
