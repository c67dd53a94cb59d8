"""How the outputs are cut up into tiles, and how long a way of cutting may take."""

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from labkit.conv.problem import Convolution

WM = 64  # rows that an instruction multiplies
STEP_BYTES = 128  # of a row, that a stage holds
CHANNELS = 64  # in so many bytes
SHARED_BYTES = 227 * 1024  # that a block can have on compute capability 9.0
BARRIER_BYTES = 1024  # of them for barriers, and to begin at a multiple of 1024
MAX_STAGES = 8
BOXES = 2  # of results, for each warpgroup

# What an H100 takes, in cycles of an SM, fitted to measured times.
START_CYCLES = 3800  # until the first tile is there
GROUP_CYCLES = 45  # of each warpgroup that multiplies, in a step
OUTPUTS_PER_CYCLE = 30  # outputs of a tile that a cycle takes a step of 64 channels
PIXEL_CYCLES = 4.4  # until 64 channels of a pixel have come from L2
FILTER_CYCLES = 0.5  # the same of a filter, which other SMs ask for as well
OUTSIDE_CYCLES = 6  # more of a filter that there is not, and whose zeros the copy engine writes
DRAM_BYTES = 1700  # that reach all SMs
STORED_PER_CYCLE = 8  # outputs that leave a block in a cycle


class Tiling(NamedTuple):
    """A block's tile: so many `groups` of warps multiply, each so many `times` 64 pixels by so many `filters`."""

    warpgroups: int
    m_blocks: int
    filters: int

    @property
    def pixels(self) -> int:
        return WM * self.warpgroups * self.m_blocks

    @property
    def stages(self) -> int:
        """As many as shared memory holds, beside the boxes of results."""
        return min(MAX_STAGES, (SHARED_BYTES - BARRIER_BYTES - self._box_bytes) // self._stage_bytes)

    @property
    def shared_bytes(self) -> int:
        return self.stages * self._stage_bytes + self._box_bytes

    @property
    def _stage_bytes(self):
        return (self.pixels + self.filters) * STEP_BYTES

    @property
    def _box_bytes(self):
        return self.warpgroups * BOXES * WM * STEP_BYTES

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread that asks for copies, and of one that multiplies."""
        return (40, 232) if self.warpgroups == 2 else (32, 160)


TILINGS = (
    *(Tiling(2, 1, filters) for filters in (64, 96, 128, 192, 256)),
    *(Tiling(2, 2, filters) for filters in (64, 96, 128)),
    *(Tiling(3, 1, filters) for filters in (64, 96, 128, 192)),
)


@lru_cache(1024)  # problems
def best_tiling(problem: Convolution, sms: int) -> Tiling:
    """The tiling that may take least on a GPU of so many SMs."""
    return min(TILINGS, key=lambda tiling: estimate_cycles(tiling, problem, sms))


def estimate_cycles(tiling: Tiling, problem: Convolution, sms: int) -> float:
    """Cycles that a convolution of 16-bit numbers may take by a tiling."""
    rows, cols = tiling.pixels, tiling.filters
    waves = ceil(ceil(problem.N * problem.P * problem.Q / rows) * ceil(problem.K / cols) / sms)
    steps = problem.R * problem.S * ceil(problem.C / CHANNELS)
    load_cycles = rows * PIXEL_CYCLES + cols * FILTER_CYCLES + -problem.K % cols * OUTSIDE_CYCLES
    step_cycles = tiling.warpgroups * GROUP_CYCLES + max(rows * cols / OUTPUTS_PER_CYCLE, load_cycles)
    dram_cycles = problem.least_bytes() / 2 / DRAM_BYTES  # of elements half as long as float32
    return START_CYCLES + max(waves * (steps * step_cycles + rows * cols / STORED_PER_CYCLE), dram_cycles)
