"""Tilings of a product into the work of blocks, ranked by estimated time."""

from functools import lru_cache
from itertools import product
from math import ceil
from typing import NamedTuple

from labkit.gemm.bandwidth import H100_BYTES_PER_CYCLE
from labkit.gemm.library.constants import MN_ROWS

SHARED_BYTES = 227 * 1024  # per block on compute capability 9.0
BARRIER_BYTES = 1024  # of them, for barriers and alignment to 1024
STEP_BYTES = 128  # of a row, per stage
MAX_STAGES = 16
SPLITS = 1, 2, 3, 4, 6, 8  # parts along k to try
MIN_COLS = 64  # of a tile that TMA stores

# Cycles of an H100's SM, fitted to measured times.
START_CYCLES = 3800  # until the first tile arrives
STEP_CYCLES = 40  # per step along k, besides its multiply-adds
OUTPUTS_PER_CYCLE = 32  # of a tile that advance by a step along k
L2_BYTES_PER_CYCLE = 70  # to one SM
STRADDLING_COST = 2.5  # of a line that begins at an odd multiple of 16 bytes, and touches a sector more, in L2
REPEATED_BYTES_PER_CYCLE = 5000  # of the longer operand, to all SMs, in each pass but the first
COPY_CYCLES = 8000  # of a launch that copies an operand first, besides its traffic
STORED_PER_CYCLE = 8  # outputs of a block
ITEM_CYCLES = 1000  # from a tile to the next, besides; twice as many if its transpose is stored
PART_BYTES_PER_CYCLE = 16  # of partial sums that a block writes or reads


class Tiling(NamedTuple):
    """Division of a product into tiles.

    rows, cols: of a block's tile. stages: of its ring. splits: parts along k, one block each. swapped: whether rows of
    the tile are B's and columns A's.
    """

    rows: int
    cols: int
    stages: int
    splits: int = 1
    swapped: bool = False


class Work(NamedTuple):
    """Size of a batched product: M x N results, from operands with rows of `row_bytes` along k.

    straddling: whether lines of the left and of the right operand in memory begin at odd multiples of 16 bytes.
    """

    M: int
    N: int
    row_bytes: int
    batches: int = 1
    straddling: tuple[bool, bool] = (False, False)


def tilings(work: Work, sms: int, width: int = 8, dram: float = H100_BYTES_PER_CYCLE) -> list[Tiling]:
    """Return the best tiling of each kind of tile for a GPU of `sms` SMs, the most promising first.

    The columns of a tile are a multiple of `width`. DRAM gives all SMs together `dram` bytes per cycle.
    """
    widths = range(MIN_COLS, 257, width)
    all_tilings = [_make_tiling(*sizes, swapped=False) for sizes in product((64, 128), widths, SPLITS)]
    narrow = {ceil(work.M / n / width) * width for n in (1, 2, 4)}  # M is one, two or four tiles wide
    narrow_sizes = product((64, 128), (cols for cols in narrow if cols <= 64), SPLITS)
    all_tilings += [_make_tiling(*sizes, swapped=True) for sizes in narrow_sizes]
    by_kind = {}
    for tiling in sorted(all_tilings, key=lambda tiling: estimate_with_copies(tiling, work, sms, dram)):
        kind = tiling.rows, tiling.cols // 32, min(tiling.splits, 3), tiling.swapped
        by_kind.setdefault(kind, tiling)
    return list(by_kind.values())


@lru_cache(1024)
def choose_whole_boxes(
    tiling: Tiling, work: Work, sms: int, copied_bytes: int, dram: float = H100_BYTES_PER_CYCLE
) -> Tiling:
    """Return a tiling whose columns are whole boxes, or the given one where that and a copy of the operand is faster.

    For an MN-major operand of `copied_bytes`. Boxes of 64 rows that are not aligned touch two cache lines per 128
    bytes: with tiles of 200 columns a product of 8192 cubed took 2.4 times as long.
    """
    if tiling.cols % MN_ROWS == 0:
        return tiling
    whole = tilings(work, sms, MN_ROWS, dram)[0]
    copy_cycles = START_CYCLES + 2 * copied_bytes / dram
    return whole if estimate(whole, work, sms, dram) < copy_cycles + estimate(tiling, work, sms, dram) else tiling


@lru_cache(1024)
def choose_copies(tiling: Tiling, work: Work, sms: int, dram: float = H100_BYTES_PER_CYCLE) -> tuple[bool, bool]:
    """Return whether to copy the left and the right operand first, to lines that begin at multiples of 32 bytes."""
    return min(_copies(work), key=lambda copied: _cycles_with(copied, tiling, work, sms, dram))


def estimate_with_copies(tiling: Tiling, work: Work, sms: int, dram: float = H100_BYTES_PER_CYCLE) -> float:
    """Estimate the cycles of a product and of the copies that `choose_copies` returns."""
    return min(_cycles_with(copied, tiling, work, sms, dram) for copied in _copies(work))


def _copies(work) -> list[tuple[bool, bool]]:
    """Return which of the two operands may be copied: those whose lines straddle sectors."""
    choices_a, choices_b = ((False, True) if straddles else (False,) for straddles in work.straddling)
    return list(product(choices_a, choices_b))


def _cycles_with(copied, tiling, work, sms, dram) -> float:
    straddling = tuple(straddles and not copy for straddles, copy in zip(work.straddling, copied))
    sizes = (rows * work.row_bytes * work.batches for rows, copy in zip((work.M, work.N), copied) if copy)
    copy_cycles = sum(COPY_CYCLES + 2 * size / dram for size in sizes)
    return copy_cycles + estimate(tiling, work._replace(straddling=straddling), sms, dram)


def check_tiling(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that the kernel does not support."""
    least = 8 if tiling.swapped else MIN_COLS
    cols = range(least, 257, 8)
    if tiling.rows not in (64, 128) or tiling.cols not in cols or tiling.stages < 2 or tiling.splits < 1:
        raise ValueError(
            f"{tiling} is not a tiling: it has 64 or 128 rows, {least} to 256 columns in steps of 8, and at least two "
            "stages and one split"
        )


def estimate(tiling: Tiling, work: Work, sms: int, dram: float = H100_BYTES_PER_CYCLE) -> float:
    """Estimate the cycles that a product takes with a tiling."""
    rows, cols = (work.N, work.M) if tiling.swapped else (work.M, work.N)
    tiles = ceil(rows / tiling.rows) * ceil(cols / tiling.cols) * work.batches
    waves = ceil(tiles * tiling.splits / sms)
    steps = ceil(work.row_bytes / STEP_BYTES / tiling.splits)
    outputs = tiling.rows * tiling.cols
    left_cost, right_cost = (STRADDLING_COST if straddles else 1 for straddles in work.straddling)
    row_cost, col_cost = (right_cost, left_cost) if tiling.swapped else (left_cost, right_cost)
    l2_cycles = (tiling.rows * row_cost + tiling.cols * col_cost) * STEP_BYTES / L2_BYTES_PER_CYCLE
    main_loop_cycles = steps * max(outputs / OUTPUTS_PER_CYCLE + STEP_CYCLES, l2_cycles)
    part_cycles = outputs * 4 * (1 + tiling.splits) / PART_BYTES_PER_CYCLE if tiling.splits > 1 else 0
    dram_bytes = (work.M + work.N) * work.row_bytes * work.batches
    side = tiling.rows if (work.M <= work.N) != tiling.swapped else tiling.cols  # of a tile along the shorter operand
    passes = ceil(min(work.M, work.N) / side)  # over the longer operand
    repeated_bytes = (passes - 1) * max(work.M, work.N) * work.row_bytes * work.batches
    memory_cycles = dram_bytes / dram + repeated_bytes / REPEATED_BYTES_PER_CYCLE
    epilogue_cycles = outputs / STORED_PER_CYCLE + part_cycles
    item_cycles = (waves - 1) * ITEM_CYCLES * (1 + tiling.swapped)
    return START_CYCLES + max(memory_cycles, waves * main_loop_cycles) + waves * epilogue_cycles + item_cycles


def max_stages(rows: int, cols: int) -> int:
    """Return the stages of such tiles that fit shared memory, besides two boxes of results per warpgroup."""
    stage_bytes = SHARED_BYTES - BARRIER_BYTES - 2 * rows * STEP_BYTES
    return min(stage_bytes // ((rows + cols) * STEP_BYTES), MAX_STAGES)


def _make_tiling(rows, cols, splits, swapped):
    return Tiling(rows, cols, max_stages(rows, cols), splits, swapped)
