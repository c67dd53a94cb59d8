"""Tilings of a float32 product into the work of blocks, ranked by estimated time."""

from math import ceil
from typing import NamedTuple

from labkit.formats import FP32
from labkit.gemm.bandwidth import H100_BYTES_PER_CYCLE
from labkit.gemm.parts import add_parts_cycles

SHARED_BYTES = 227 * 1024  # of an SM of compute capability 9.0
BLOCK_BYTES = 1024  # of them, that each block takes besides
REGISTERS = 65536  # of an SM
MAX_BLOCKS = 32  # of an SM

# Cycles of an SM, fitted to times on an H200.
START_CYCLES = 4000  # until the first tile arrives, and until the last result is stored
WAVE_CYCLES = 1500  # of each further wave of blocks
MADDS_PER_CYCLE = 128
FULL_WARPS = 8.5  # with 64 sums per thread, that keep the multipliers busy; those with 128 count twice
L2_BYTES_PER_CYCLE = 64  # to one SM
OVERLAP_LOSS = 0.1  # share of the shorter ones of computing and both kinds of traffic that adds to the longest


class Tiling(NamedTuple):
    """Division of a product into tiles.

    rows, cols, slices: of one of BLOCKS. parts: of k, one block each. swapped: whether rows of the tile are those of
    the right operand and columns those of the left one.
    """

    rows: int
    cols: int
    slices: int = 1
    parts: int = 1
    swapped: bool = False


class Block(NamedTuple):
    """Work of a block of `rows` x `cols` outputs among its warps.

    slices: groups of warps that take a part of each step along k. warps_y, warps_x, lanes_y: of a group, and of a
    warp. step: values of k per stage. efficiency: share of the peak of an SM that is full of such blocks; measured.
    """

    rows: int
    cols: int
    slices: int
    warps_y: int
    warps_x: int
    lanes_y: int
    step: int
    stages: int
    efficiency: float

    @property
    def lanes_x(self) -> int:
        return 32 // self.lanes_y

    @property
    def warps(self) -> int:
        return self.slices * self.warps_y * self.warps_x

    @property
    def thread_rows(self) -> int:
        return self.rows // (self.warps_y * self.lanes_y)

    @property
    def thread_cols(self) -> int:
        return self.cols // (self.warps_x * self.lanes_x)

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.cols) * self.step * 4

    @property
    def shared_bytes(self) -> int:
        sums = self.slices * self.rows * self.cols * 4 if self.slices > 1 else 0
        return max(self.stages * self.stage_bytes, sums)

    @property
    def per_sm(self) -> int:
        """Blocks that an SM holds."""
        by_memory = SHARED_BYTES // (self.shared_bytes + BLOCK_BYTES)
        by_registers = REGISTERS // (32 * self.warps * self.registers)
        return min(by_memory, by_registers, MAX_BLOCKS)

    @property
    def registers(self) -> int:
        """Registers of a thread: its sums, its part of the right operand at eight k, and others."""
        return min(255, self.thread_rows * self.thread_cols + 8 * self.thread_cols + 32)


BLOCKS = (
    Block(128, 256, slices=1, warps_y=2, warps_x=4, lanes_y=4, step=32, stages=2, efficiency=0.8),
    Block(128, 192, slices=1, warps_y=4, warps_x=2, lanes_y=4, step=32, stages=2, efficiency=0.78),
    Block(128, 128, slices=1, warps_y=2, warps_x=2, lanes_y=4, step=32, stages=3, efficiency=0.77),
    Block(64, 128, slices=4, warps_y=1, warps_x=2, lanes_y=4, step=64, stages=4, efficiency=0.745),
    Block(64, 64, slices=8, warps_y=1, warps_x=1, lanes_y=4, step=64, stages=4, efficiency=0.7),
    Block(64, 64, slices=1, warps_y=2, warps_x=1, lanes_y=4, step=32, stages=3, efficiency=0.78),
    Block(32, 128, slices=4, warps_y=1, warps_x=1, lanes_y=2, step=32, stages=4, efficiency=0.68),
    Block(32, 32, slices=1, warps_y=1, warps_x=1, lanes_y=4, step=32, stages=2, efficiency=0.5),
    Block(16, 128, slices=4, warps_y=1, warps_x=1, lanes_y=1, step=32, stages=4, efficiency=0.64),
    Block(8, 128, slices=8, warps_y=1, warps_x=1, lanes_y=1, step=64, stages=3, efficiency=0.46),
    Block(4, 128, slices=8, warps_y=1, warps_x=1, lanes_y=1, step=64, stages=3, efficiency=0.32),
)
BY_KIND = {(block.rows, block.cols, block.slices): block for block in BLOCKS}


class Work(NamedTuple):
    """Size of a batched product."""

    M: int
    N: int
    K: int
    batches: int = 1


def block_of(tiling: Tiling) -> Block:
    """Return the kind of block of a tiling; raise ValueError if there is none."""
    block = BY_KIND.get(tiling[:3])
    if block is None or tiling.parts < 1:
        raise ValueError(f"{tiling} is not a tiling: it has one of BLOCKS, and at least one part")
    return block


def tilings(
    work: Work, sms: int, dram: float = H100_BYTES_PER_CYCLE, shared_bytes: int = SHARED_BYTES
) -> list[tuple[Tiling, float]]:
    """Return the best tiling of each kind of block and its estimated cycles, the most promising first.

    DRAM gives all SMs together `dram` bytes per cycle; a block may have `shared_bytes` of shared memory.
    """
    found = []
    for block in (block for block in BLOCKS if block.shared_bytes <= shared_bytes):
        for swapped in (False, True) if block.rows < block.cols and work.N < work.M else (False,):
            options = [Tiling(*block[:3], parts, swapped) for parts in _parts(block, work, sms, swapped)]
            cycles = {tiling: estimate(tiling, work, sms, dram) for tiling in options}
            found.append(min(cycles.items(), key=lambda item: item[1]))
    return sorted(found, key=lambda item: item[1])


def _parts(block, work, sms, swapped) -> list[int]:
    """Return the numbers of parts of k that give each SM one, two or more blocks, each the least for its steps."""
    tiles = _count_tiles(block, work, swapped)
    steps = ceil(work.K / block.step)
    filling = {max(1, min(steps, blocks * sms // tiles)) for blocks in range(1, 2 * block.per_sm + 1)}
    return sorted({1, *(ceil(steps / ceil(steps / parts)) for parts in filling)})


def _count_tiles(block, work, swapped) -> int:
    rows, cols = (work.N, work.M) if swapped else (work.M, work.N)
    return ceil(rows / block.rows) * ceil(cols / block.cols) * work.batches


def estimate(tiling: Tiling, work: Work, sms: int, dram: float = H100_BYTES_PER_CYCLE) -> float:
    """Estimate the cycles that a product takes with a tiling."""
    block = block_of(tiling)
    blocks = ceil(_count_tiles(block, work, tiling.swapped) * tiling.parts / sms)  # of the SM that has most
    depth = ceil(ceil(work.K / block.step) / tiling.parts) * block.step
    warps = min(blocks, block.per_sm) * block.warps * max(1, block.thread_rows * block.thread_cols / 64)
    busy = min(1, warps / FULL_WARPS)
    madd_cycles = blocks * block.rows * block.cols * depth / (MADDS_PER_CYCLE * block.efficiency * busy)
    l2_cycles = blocks * (block.rows + block.cols) * depth * FP32.itemsize / L2_BYTES_PER_CYCLE
    result_bytes = work.M * work.N * work.batches * FP32.itemsize
    dram_bytes = (work.M + work.N) * work.K * work.batches * FP32.itemsize + result_bytes
    limits = madd_cycles, l2_cycles, dram_bytes / dram
    cycles = START_CYCLES + max(limits) + OVERLAP_LOSS * (sum(limits) - max(limits))
    cycles += (ceil(blocks / block.per_sm) - 1) * WAVE_CYCLES
    if tiling.parts > 1:
        cycles += add_parts_cycles(tiling.parts, work.M * work.N * work.batches)
    return cycles
