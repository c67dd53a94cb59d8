"""Tile shapes of the outputs, and their predicted times."""

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from labkit.conv.problem import Convolution

WM = 64  # rows per instruction
STEP_BYTES = 128  # of a row per stage
CHANNELS = 64  # in these bytes
SHARED_BYTES = 227 * 1024  # per block on compute capability 9.0
BARRIER_BYTES = 1024  # of them, for barriers and alignment to 1024
MAX_STAGES = 8
BOXES = 2  # of results per warpgroup

# Cycles of an SM of an H100, fitted to measured times.
START_CYCLES = 3800  # until the first tile is loaded
GROUP_CYCLES = 45  # per consumer warpgroup and step
OUTPUTS_PER_CYCLE = 30  # of a tile, in a step of 64 channels
PIXEL_CYCLES = 4.4  # to load 64 channels of a pixel from L2
FILTER_CYCLES = 0.5  # the same of a filter, which other SMs load as well
OUTSIDE_CYCLES = 6  # more for a filter past the last, whose zeros TMA writes
DRAM_BYTES = 1700  # per cycle, for all SMs
STORED_PER_CYCLE = 8  # outputs of a block


class Tiling(NamedTuple):
    """A block's tile: each consumer warpgroup multiplies `m_blocks` blocks of 64 pixels by `filters` filters."""

    warpgroups: int
    m_blocks: int
    filters: int

    @property
    def pixels(self) -> int:
        return WM * self.warpgroups * self.m_blocks

    @property
    def stages(self) -> int:
        """Stages that fit into shared memory with the boxes of results."""
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
        """Registers of a producer thread, and of a consumer."""
        return (40, 232) if self.warpgroups == 2 else (32, 160)


TILINGS = (
    *(Tiling(2, 1, filters) for filters in (64, 96, 128, 192, 256)),
    *(Tiling(2, 2, filters) for filters in (64, 96, 128)),
    *(Tiling(3, 1, filters) for filters in (64, 96, 128, 192)),
)


class Product(NamedTuple):
    """Sizes of the product that a convolution is: windows by filters, over steps of 64 channels of a tap."""

    pixels: int  # windows, one per output
    filters: int
    steps: int
    bytes: int  # of operands of 16-bit elements, each once


def as_product(problem: Convolution) -> Product:
    """Return the product that computes the outputs of a convolution."""
    steps = problem.R * problem.S * ceil(problem.C / CHANNELS)
    return Product(problem.N * problem.P * problem.Q, problem.K, steps, problem.min_bytes() // 2)


@lru_cache(1024)  # products
def best_tiling(product: Product, sms: int, tilings: tuple[Tiling, ...] = TILINGS) -> Tiling:
    """Return the tiling with the least predicted time on a GPU with this number of SMs."""
    return min(tilings, key=lambda tiling: estimate_cycles(tiling, product, sms))


def estimate_cycles(tiling: Tiling, product: Product, sms: int) -> float:
    """Return the predicted cycles of a product of 16-bit numbers."""
    rows, cols = tiling.pixels, tiling.filters
    waves = ceil(ceil(product.pixels / rows) * ceil(product.filters / cols) / sms)
    load_cycles = rows * PIXEL_CYCLES + cols * FILTER_CYCLES + -product.filters % cols * OUTSIDE_CYCLES
    step_cycles = tiling.warpgroups * GROUP_CYCLES + max(rows * cols / OUTPUTS_PER_CYCLE, load_cycles)
    tile_cycles = product.steps * step_cycles + rows * cols / STORED_PER_CYCLE
    return START_CYCLES + max(waves * tile_cycles, product.bytes / DRAM_BYTES)
