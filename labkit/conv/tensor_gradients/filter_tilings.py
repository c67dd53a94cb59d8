"""Tile shapes of the filters' gradient, the parts of its sums, and their predicted times."""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from labkit.conv.tensor.tilings import (
    BARRIER_BYTES,
    CHANNELS,
    DRAM_BYTES,
    GROUP_CYCLES,
    MAX_STAGES,
    OUTPUTS_PER_CYCLE,
    PIXEL_CYCLES,
    SHARED_BYTES,
    START_CYCLES,
)

WM = 64  # rows per instruction
ROW_BYTES = 128  # of a pixel in a tile
PIXELS = 64  # in a step of the model
MIN_STAGES = 4  # of 64 pixels; with less room a stage has 32
MAX_WAVES = 3  # of blocks, that parts may make

# Cycles of an SM of an H100.
SHARED_CYCLES = 0.5  # to load a row of a tile that other SMs load as well, at least
STORED_PER_CYCLE = 6  # float32 sums of a block
REDUCTION_CYCLES = 3500  # to start and end the launch that adds parts
REDUCED_BYTES = 1500  # per cycle, for all SMs


class Tiling(NamedTuple):
    """A block's tile: groups of 64 filters by groups of channels, one per warpgroup.

    Each warpgroup multiplies `m_blocks` blocks of 64 filters by `columns` channels, of one or several taps.
    """

    row_groups: int
    col_groups: int
    m_blocks: int
    columns: int

    @property
    def warpgroups(self) -> int:
        return self.row_groups * self.col_groups

    @property
    def filters(self) -> int:
        return WM * self.row_groups * self.m_blocks

    @property
    def channels(self) -> int:
        return self.columns * self.col_groups

    @property
    def pixels(self) -> int:
        """Pixels per stage."""
        return PIXELS if self._room // self._stage_bytes(PIXELS) >= MIN_STAGES else PIXELS // 2

    @property
    def stages(self) -> int:
        return min(MAX_STAGES, self._room // self._stage_bytes(self.pixels))

    @property
    def shared_bytes(self) -> int:
        return self.stages * self._stage_bytes(self.pixels)

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of a producer thread, and of a consumer."""
        return (40, 232) if self.warpgroups == 2 else (32, 160)

    @property
    def _room(self):
        return SHARED_BYTES - BARRIER_BYTES

    def _stage_bytes(self, pixels):
        return (self.filters + self.channels) // CHANNELS * ROW_BYTES * pixels


TILINGS = (
    *(Tiling(2, 1, 1, columns) for columns in (64, 128, 192, 256)),
    *(Tiling(2, 1, 2, columns) for columns in (64, 128)),
    *(Tiling(1, 2, 1, columns) for columns in (64, 128, 192, 256)),
    *(Tiling(3, 1, 1, columns) for columns in (64, 128, 192)),
    *(Tiling(1, 3, 1, columns) for columns in (128, 192)),
)


class Product(NamedTuple):
    """Sizes of the product that the gradient is, over all pixels of the outputs."""

    filters: int
    channels: int  # of all taps, each padded to whole copies of 64
    pixels: int
    sums: int  # elements of the result
    bytes: int  # of operands of 16-bit elements, each once


@lru_cache(1024)  # products
def best_split(product: Product, sms: int, max_parts: int) -> tuple[Tiling, int]:
    """Return the tiling and the number of parts of each sum with the least predicted time."""
    return min(list_splits(product, sms, max_parts), key=lambda split: estimate_cycles(*split, product, sms))


def list_splits(product: Product, sms: int, max_parts: int) -> Iterator[tuple[Tiling, int]]:
    """Yield tilings with numbers of parts: one, or such that tiles of all parts fill the SMs once or several times."""
    for tiling in TILINGS:
        most = min(max_parts, ceil(product.pixels / tiling.pixels))
        for parts in sorted({1, *(min(most, waves * sms // count_tiles(tiling, product)) for waves in _waves())}):
            if parts:
                yield tiling, parts


def _waves():
    return range(1, 1 + MAX_WAVES)


def count_tiles(tiling: Tiling, product: Product) -> int:
    return ceil(product.filters / tiling.filters) * ceil(product.channels / tiling.channels)


def estimate_cycles(tiling: Tiling, parts: int, product: Product, sms: int) -> float:
    """Return the predicted cycles of the gradient of 16-bit numbers."""
    rows, cols = tiling.filters, tiling.channels
    row_tiles, col_tiles = ceil(product.filters / rows), ceil(product.channels / cols)
    waves = ceil(row_tiles * col_tiles * parts / sms)
    steps = ceil(ceil(product.pixels / PIXELS) / parts)
    load_cycles = rows * max(SHARED_CYCLES, PIXEL_CYCLES / col_tiles) + cols * max(
        SHARED_CYCLES, PIXEL_CYCLES / row_tiles
    )
    step_cycles = tiling.warpgroups * GROUP_CYCLES + max(rows * cols / OUTPUTS_PER_CYCLE, load_cycles)
    tile_cycles = steps * step_cycles + rows * cols / STORED_PER_CYCLE
    reduction_cycles = REDUCTION_CYCLES + 4 * parts * product.sums / REDUCED_BYTES if parts > 1 else 0
    return START_CYCLES + max(waves * tile_cycles, product.bytes / DRAM_BYTES) + reduction_cycles
