"""How images are divided among threads that slide over strips of rows, for all steps after the first.

A thread has WIDTH / UNIT neighbouring channels and a strip: up to `strip_rows` rows of a tile of columns. NHWC has
vectors of channels, and UNIT is 1; NCHW has vectors of UNIT columns, and one channel per thread.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from labkit import cuda
from labkit.conv.depthwise.phases import Phase
from labkit.conv.problem import Convolution
from labkit.conv.sizes import check_counts
from labkit.formats import Format
from labkit.ladder import TooLarge
from labkit.parts.division import Divisor, make_divisor

THREADS = 256  # of a block, at most
LANES = 64  # of a block along channels
MAX_ELEMENTS = 2**32  # of an array, for 32-bit indices
START_ROWS = 3  # whose time a strip takes before its first row
MAX_AHEAD = 3  # rows on their way, if shared memory holds them
SM_SHARED_BYTES = 227 * 1024  # of all blocks, on compute capability 9.0
BLOCK_WAVES = 4
MANY = 2**24  # outputs, from which threads have more of them


class Image(NamedTuple):
    """Where the pixels of an array are: all distances in elements, as `vectors` calls them."""

    rows: np.uint32
    vectors: np.uint32  # of a row
    begin: np.uint32  # of the first image
    image: np.uint32  # from an image to the next
    lane: np.uint32  # from a thread's channels to the next thread's
    row: np.uint32
    step: np.uint32  # from a vector of a row to the next


class Strips(NamedTuple):
    """The strips of all images, numbered by image, strip and tile, and the block of a number."""

    items: np.uint32
    strip_rows: np.int32
    channels: np.uint32
    tiles: Divisor  # of a row
    strips: Divisor  # of an image
    chunks: Divisor  # of channels


@dataclass(frozen=True)
class Tiling:
    """Vectors of `width` numbers, of which `unit` are columns; `columns` of a tile; blocks per SM."""

    width: int
    unit: int
    columns: int
    blocks: int

    @property
    def channels(self) -> int:
        return self.width // self.unit


def make_image(problem: Convolution, name: str, tiling: Tiling, format: Format, phase: Phase) -> Image:
    """Return where the pixels of x or y are; raise TooLarge if indices do not fit into 32 bits."""
    rows, columns = (problem.H, problem.W) if name == "x" else (problem.P, problem.Q)
    image = problem.C * rows * columns
    if problem.N * image >= MAX_ELEMENTS:
        raise TooLarge(f"{name} has 2**32 elements or more", "take fewer images at a time")
    packed = 2 if format.itemsize == 2 and tiling.width > 1 else 1
    pixel = problem.C if problem.layout == "NHWC" else 1  # elements from a pixel to the next
    lane = tiling.width if problem.layout == "NHWC" else rows * columns
    first_row, first_column = phase.first(name)
    begin = (first_row * columns + first_column) * pixel
    row, step = columns * pixel * problem.dilation_h, tiling.unit * pixel * problem.dilation_w
    phase_rows, phase_columns = phase.shape(name)
    numbers = phase_rows, phase_columns // tiling.unit, *(n // packed for n in (begin, image, lane, row, step))
    return Image(*map(np.uint32, numbers))


def make_strips(
    problem: Convolution, tiling: Tiling, rows: int, columns: int, halo: int, waves: int = BLOCK_WAVES
) -> tuple[Strips, int, tuple[int, int]]:
    """Divide `rows` x `columns` of each image, and return the strips, grid and block.

    A strip takes as long as `halo` rows more than it has. Above `waves` waves of blocks a thread has several strips.
    """
    lanes = -(-problem.C // tiling.channels)
    chunks = -(-lanes // LANES) if problem.layout == "NHWC" else lanes
    block_lanes, tiles = -(-lanes // chunks), -(-columns // tiling.columns)
    block_rows = max(1, THREADS // block_lanes)
    resident = cuda.get_current_device().MULTIPROCESSOR_COUNT * tiling.blocks
    strip_rows = best_strip_rows(rows, problem.N * tiles, chunks, block_rows, resident, halo)
    strips = -(-rows // strip_rows)
    items = problem.N * tiles * strips
    check_counts({"all strips": items})
    block_rows = min(block_rows, items)
    repeats = max(1, items * chunks // (block_rows * resident * waves))
    parts = -(-items // (block_rows * repeats))
    divisors = map(make_divisor, (tiles, strips, chunks))
    numbers = Strips(np.uint32(items), np.int32(strip_rows), np.uint32(problem.C), *divisors)
    return numbers, parts * chunks, (block_lanes, block_rows)


@lru_cache(1024)  # problems
def best_strip_rows(rows: int, tiles: int, chunks: int, block_rows: int, resident: int, halo: int) -> int:
    """Return the rows of a strip with the least predicted time: waves of blocks, by the rows that each takes."""

    def time(strip_rows):
        blocks = -(-tiles * -(-rows // strip_rows) // block_rows) * chunks
        return -(-blocks // resident) * (strip_rows + halo + START_ROWS)

    return min(sorted({-(-rows // strips) for strips in range(1, rows + 1)}, reverse=True), key=time)


def rows_ahead(tiling: Tiling, vectors: int, other_bytes: int = 0) -> int:
    """Return how many rows of 16-bit vectors a ring may have on their way, beside one in use and other bytes."""
    row_bytes = vectors * tiling.width * 2 * THREADS
    return max(1, min(MAX_AHEAD, (SM_SHARED_BYTES // tiling.blocks - other_bytes) // row_bytes - 1))


# columns of a tile and blocks per SM, by the most taps and the columns of a vector: fastest on an H200
OF_COLUMNS = {
    (9, 4): (8, 3), (9, 2): (2, 4), (9, 1): (1, 4),
    (25, 4): (8, 2), (25, 2): (2, 4), (25, 1): (1, 4),
    (49, 4): (4, 2), (49, 2): (4, 2), (49, 1): (4, 2),
}  # fmt: skip
OF_COLUMNS_FOR_FILTERS = OF_COLUMNS | {(9, 2): (4, 3), (9, 1): (2, 4), (25, 2): (4, 2), (25, 1): (2, 4)}


def best_tiling(problem: Convolution) -> Tiling:
    """Return the tiling for outputs or for the gradient of images, as measured on an H200."""
    taps = max_taps(problem)
    if problem.layout == "NCHW":
        return tiling_of_columns(problem, OF_COLUMNS)
    is_wide = problem.N * problem.K * problem.P * problem.Q >= MANY and problem.stride_w == 1
    widths = {9: (4, 2, 1) if is_wide else (2, 1), 25: (2, 1), 49: (1,)}
    width = next(width for width in widths[taps] if problem.C % width == 0)
    columns = 7 if taps == 49 and problem.stride_w == 1 else 4
    return Tiling(width, 1, columns, 3 if taps * width < 20 else 2)


def best_filter_tiling(problem: Convolution) -> Tiling:
    """Return the tiling for the gradient of filters, as measured on an H200."""
    taps = max_taps(problem)
    if problem.layout == "NCHW":
        return tiling_of_columns(problem, OF_COLUMNS_FOR_FILTERS)
    outputs = problem.N * problem.K * problem.P * problem.Q
    if taps == 9 and problem.C % 2 == 0:
        if outputs >= MANY and problem.C % 4 == 0:
            return Tiling(4, 1, 2, 2)
        return Tiling(2, 1, 4, 2) if outputs >= MANY // 2 else Tiling(2, 1, 8, 1)
    return Tiling(1, 1, 4 if taps == 49 else 8, 2)


def max_taps(problem: Convolution) -> int:
    """Return the taps of the smallest square filter of 3, 5 or 7 rows with as many taps."""
    return next(taps for taps in (9, 25, 49) if taps >= problem.R * problem.S)


def tiling_of_columns(problem: Convolution, table) -> Tiling:
    """Return the tiling for the widest vectors of columns that divide rows of pixels and of outputs."""
    units = (2, 1) if problem.result == "x" and problem.stride_w > 1 else (4, 2, 1)
    units = (1,) if problem.dilation_w > 1 else units  # no neighbours
    unit = next(unit for unit in units if problem.W % unit == 0 and problem.Q % unit == 0)
    columns, blocks = table[max_taps(problem), unit]
    if problem.stride_w > 1:  # more pixels in registers
        columns = unit * problem.stride_w if problem.result == "x" else min(columns, 4)
    return Tiling(unit, unit, columns, blocks)


def best_ring_tiling(problem: Convolution) -> Tiling:
    """Return the tiling for vectors of one or two words in rings, as measured on an H200."""
    if max_taps(problem) > 9:
        return Tiling(2, 1, 4, 2)
    is_filter = problem.result == "w"
    if problem.N * problem.K * problem.P * problem.Q >= MANY and problem.C % 4 == 0:
        return Tiling(4, 1, 2 if is_filter else 4, 2)
    return Tiling(2, 1, 4, 3 if is_filter else 4)
