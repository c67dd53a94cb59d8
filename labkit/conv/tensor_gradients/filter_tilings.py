"""Tile shapes of the filters' gradient, the parts of its sums, and their predicted times."""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from labkit.conv.tensor.tilings import (
    BARRIER_BYTES,
    CHANNELS,
    DRAM_BYTES,
    MAX_STAGES,
    OUTSIDE_CYCLES,
    PIXEL_CYCLES,
    SHARED_BYTES,
    START_CYCLES,
)

WM = 64  # rows per instruction
ROW_BYTES = 128  # of a pixel in a tile
PIXELS = 64  # in a step of the model
MIN_STAGES = 4  # of 64 pixels; with less room a stage has 32
MAX_WAVES = 3  # of blocks, that parts may make

# Cycles of an SM of an H100, fitted to measured times of an H200.
SHARED_CYCLES = 0.5  # at least, to load a row of a tile from L2 that other SMs load as well
SHARING = 0.75  # n blocks that load the same rows take 1 / n**SHARING of the time
STEP_CYCLES = 20  # of waits
OUTPUTS_PER_CYCLE = 31  # of a tile, in a step of 64 pixels
SHARED_BYTES_PER_CYCLE = 128  # of shared memory
STORED_PER_CYCLE = 8  # sums of a block, to memory
REDUCTION_CYCLES = 2500  # to start and end the launch that adds parts
REDUCED_BYTES = 2000  # per cycle, for all SMs


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
        return (56, 224) if self.warpgroups == 2 else (56, 152)

    @property
    def _room(self):
        return SHARED_BYTES - BARRIER_BYTES

    def _stage_bytes(self, pixels):
        return (self.filters + self.channels) // CHANNELS * ROW_BYTES * pixels


TILINGS = (
    *(Tiling(1, 2, 1, columns) for columns in (64, 128, 192, 256)),
    *(Tiling(2, 1, 1, columns) for columns in (64, 128, 192, 256)),
    *(Tiling(2, 1, 2, columns) for columns in (64, 128)),
    *(Tiling(3, 1, 1, columns) for columns in (64, 128, 192)),
    *(Tiling(1, 3, 1, columns) for columns in (128, 192)),
)


class Split(NamedTuple):
    """A tiling, and the parts of each sum."""

    tiling: Tiling
    parts: int


class Product(NamedTuple):
    """Sizes of the product that the gradient is, over all pixels of the outputs."""

    filters: int
    channels: int  # of all taps, each padded to whole copies of 64
    pixels: int
    sums: int  # elements of the result
    bytes: int  # of operands of 16-bit elements, each once


@lru_cache(1024)  # products
def best_split(product: Product, sms: int, max_parts: int | None = None) -> Split:
    """Return the split with the least predicted time, with at most `max_parts` parts, or one."""
    return min(list_splits(product, sms, max_parts), key=lambda split: estimate_cycles(split, product, sms))


def list_splits(product: Product, sms: int, max_parts: int | None = None) -> Iterator[Split]:
    """Yield splits with one part, or with such a number that tiles of all parts fill the SMs once or several times."""
    for tiling in TILINGS:
        steps, tiles = ceil(product.pixels / tiling.pixels), count_tiles(tiling, product)
        most = steps if max_parts is None else min(steps, max_parts)
        for parts in {1, *(min(most, waves * sms // tiles) for waves in range(1, 1 + MAX_WAVES))}:
            yield Split(tiling, max(1, parts))


def count_tiles(tiling: Tiling, product: Product) -> int:
    return ceil(product.filters / tiling.filters) * ceil(product.channels / tiling.channels)


def estimate_cycles(split: Split, product: Product, sms: int) -> float:
    """Return the predicted cycles of the gradient of 16-bit numbers.

    A step of 64 pixels takes as long as its products, or the copies from L2, or its traffic with shared memory: 128
    bytes per cycle, a row of a tile written by a copy or read by a warpgroup.
    """
    tiling, parts = split
    rows, cols = tiling.filters, tiling.channels
    row_tiles, col_tiles = ceil(product.filters / rows), ceil(product.channels / cols)
    waves = ceil(row_tiles * col_tiles * parts / sms)
    steps = ceil(ceil(product.pixels / PIXELS) / parts)
    load_cycles = _load_cycles(rows, product.filters, col_tiles) + _load_cycles(cols, product.channels, row_tiles)
    shared_rows = rows + cols + tiling.warpgroups * tiling.m_blocks * (WM + tiling.columns)
    shared_cycles = shared_rows * ROW_BYTES / SHARED_BYTES_PER_CYCLE
    step_cycles = STEP_CYCLES + max(rows * cols / OUTPUTS_PER_CYCLE, load_cycles, shared_cycles)
    tile_cycles = steps * step_cycles + rows * cols / STORED_PER_CYCLE
    reduction_cycles = REDUCTION_CYCLES + 4 * parts * product.sums / REDUCED_BYTES if parts > 1 else 0
    return START_CYCLES + max(waves * tile_cycles, product.bytes / DRAM_BYTES) + reduction_cycles


def _load_cycles(size: int, total: int, blocks: int) -> float:
    """Return the cycles to load 64 pixels of `size` filters or channels, of `total`, that as many blocks load."""
    outside = -total % size / ceil(total / size)  # past the last, on average
    return size * max(SHARED_CYCLES, PIXEL_CYCLES / blocks**SHARING) + outside * OUTSIDE_CYCLES
