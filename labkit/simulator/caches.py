"""Set-associative, sectored, write-back caches with least-recently-used replacement, for njit code.

One model serves a GPU's L1 (one copy per SM), its L2, and a CPU's levels (where a line is one sector). A CPU takes the
set from a line's lowest address bits, so that strides of a power of two share few sets. A GPU hashes the address
(C. Nugteren et al., "A Detailed GPU Cache Model Based on Reuse Distance Theory", HPCA 2014). The hash here is of the
same kind; consecutive lines still go to different sets.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from labkit.machine.gpus import Gpu
from labkit.machine.occupancy import occupancy, shared_allocation
from labkit.simulator.seam import inner_njit, njit


class Cache(NamedTuple):
    """State of `copies` equal caches, a tuple that numba passes to compiled code."""

    lines: Int64[np.ndarray, "copies sets ways"]  # line in each way, -1 if none; the way used last comes first
    valid: UInt8[np.ndarray, "copies sets ways"]  # a bit per sector of the line
    dirty: UInt8[np.ndarray, "copies sets ways"]  # likewise
    sectors_per_line: int
    hashed: bool  # the set is a hash of the line's number, not its lowest bits


def make_cache(
    size_bytes: int, ways: int, line_bytes: int = 128, sector_bytes: int = 32, copies: int = 1, hashed: bool = False
) -> Cache:
    """Make empty caches of `size_bytes` each, rounded down to whole sets (any number of them)."""
    if line_bytes % sector_bytes or not 1 <= line_bytes // sector_bytes <= 8:
        raise ValueError(
            f"a line of {line_bytes} bytes cannot be cut into sectors of {sector_bytes}: choose 1 to 8 whole sectors"
        )
    if ways < 1 or size_bytes < ways * line_bytes:
        raise ValueError(
            f"a cache of {size_bytes} bytes cannot hold {ways} ways of {line_bytes} bytes: "
            f"give it at least one way and {max(ways, 1) * line_bytes} bytes"
        )
    shape = (copies, size_bytes // (ways * line_bytes), ways)
    return Cache(
        lines=np.full(shape, -1, np.int64),
        valid=np.zeros(shape, np.uint8),
        dirty=np.zeros(shape, np.uint8),
        sectors_per_line=line_bytes // sector_bytes,
        hashed=hashed,
    )


def resident_blocks(gpu: Gpu, threads: int, shared_bytes: int) -> int:
    """Return the blocks that one SM holds at a time, at the usual number of registers."""
    return max(1, occupancy(gpu, threads, shared_bytes).blocks)


def l1_bytes(gpu: Gpu, threads: int, shared_bytes: int) -> int:
    """Return the L1 size of an SM: its memory minus the smallest shared-memory carve-out that holds its blocks."""
    needed = resident_blocks(gpu, threads, shared_bytes) * shared_allocation(gpu, shared_bytes)
    return gpu.l1_bytes - min((c for c in gpu.shared_bytes_choices if c >= needed), default=gpu.shared_bytes_per_sm)


def make_l1(gpu: Gpu, threads: int, shared_bytes: int, copies: int) -> Cache:
    """Make the empty L1 of each of `copies` SMs, for blocks with this many threads and shared bytes."""
    return make_cache(l1_bytes(gpu, threads, shared_bytes), ways=16, copies=copies, hashed=True)


@inner_njit
def _count_bits(mask):
    count = 0
    while mask:
        mask &= mask - np.uint64(1)
        count += 1
    return count


@njit(cache=True)
def set_index(cache: Cache, line: int) -> int:
    """Return the set of a line: its lowest bits, or a hash that folds higher bits onto them, seven at a time."""
    line = np.uint64(line)
    if cache.hashed:
        line ^= line >> np.uint64(7)
        line ^= line >> np.uint64(14)
    return line % np.uint64(cache.lines.shape[1])


@inner_njit
def is_latest(cache: Cache, copy: int, sector: int) -> bool:
    """Return whether the sector is in the latest line of its set, where another read changes nothing.

    Small enough to be inlined into the caller's loop, where it saves most calls of `touch`.
    """
    line = np.uint64(sector) // np.uint64(cache.sectors_per_line)
    bit = np.uint64(1) << (np.uint64(sector) % np.uint64(cache.sectors_per_line))
    copy, row, first = np.uint64(copy), set_index(cache, line), np.uint64(0)
    return cache.lines[copy, row, first] == np.int64(line) and (cache.valid[copy, row, first] & bit) != 0


# Unsigned indices avoid numba's check for negative ones, which halves the speed here.
@njit(cache=True)
def touch(cache: Cache, copy: int, sector: int, write: bool) -> tuple[bool, int]:
    """Access one sector (byte address // sector_bytes) of one copy; load it if it is missing.

    If its line is missing too, the least recently used line of the set is evicted.

    Parameters
    ----------
    write : bool
        Mark the sector dirty.

    Returns
    -------
    hit : bool
        Whether the sector was in the cache before.
    dirty_sectors_evicted : int
        Sectors that the eviction wrote back.
    """
    lines, valid, dirty = cache.lines, cache.valid, cache.dirty
    line = np.uint64(sector) // np.uint64(cache.sectors_per_line)
    sector_bit = np.uint64(1) << (np.uint64(sector) % np.uint64(cache.sectors_per_line))
    row = set_index(cache, line)
    copy = np.uint64(copy)
    one, first, last = np.uint64(1), np.uint64(0), np.uint64(lines.shape[2] - 1)
    tag = np.int64(line)

    way = first
    while way < last and lines[copy, row, way] != tag:
        way += one

    hit, evicted = False, 0
    valid_bits = dirty_bits = first
    if lines[copy, row, way] == tag:
        valid_bits, dirty_bits = np.uint64(valid[copy, row, way]), np.uint64(dirty[copy, row, way])
        hit = (valid_bits & sector_bit) != 0
    if lines[copy, row, way] != tag:
        evicted = _count_bits(np.uint64(dirty[copy, row, way]))

    while way > first:
        before = way - one
        lines[copy, row, way] = lines[copy, row, before]
        valid[copy, row, way] = valid[copy, row, before]
        dirty[copy, row, way] = dirty[copy, row, before]
        way = before
    lines[copy, row, first] = tag
    valid[copy, row, first] = valid_bits | sector_bit
    dirty[copy, row, first] = dirty_bits | sector_bit if write else dirty_bits
    return hit, evicted


def dirty_sectors(cache: Cache) -> int:
    """Return the number of sectors, over all copies, that are not written back yet."""
    return int(np.bitwise_count(cache.dirty).sum())
