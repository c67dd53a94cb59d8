"""Set-associative, sectored, write-back caches with least-recently-used replacement, for njit code.

One model serves a GPU's L1 (one copy per SM), its L2, and a CPU's levels (where a line is one sector). A CPU takes the
set from a line's lowest address bits, so that strides of a power of two share few sets. A GPU hashes the address
(C. Nugteren et al., "A Detailed GPU Cache Model Based on Reuse Distance Theory", HPCA 2014). The hash here is of the
same kind; consecutive lines still go to different sets.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from labkit.machine.gpus import Gpu
from labkit.machine.occupancy import occupancy, shared_allocation
from labkit.simulator.seam import inner_njit, njit

LINE, DIRTY = (
    16,
    8,
)  # an entry's bits: 0 to 7 say which sectors are valid, 8 to 15 which are dirty, the rest is the line
NO_LINE = -1


class Cache(NamedTuple):
    """State of `copies` equal caches, a tuple that numba passes to compiled code."""

    entries: Int64[np.ndarray, "copies sets ways"]  # a line with its sectors' bits; the way used last comes first
    sectors_per_line: int
    hashed: bool  # the set is a hash of the line's number, not its lowest bits

    @property
    def lines(self) -> Int64[np.ndarray, "copies sets ways"]:
        """The line in each way, -1 if none."""
        return self.entries >> LINE


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
        entries=np.full(shape, NO_LINE << LINE, np.int64),
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
    return line % np.uint64(cache.entries.shape[1])


@inner_njit
def is_latest(cache: Cache, copy: int, sector: int) -> bool:
    """Return whether the sector is in the latest line of its set, where another read changes nothing.

    Small enough to be inlined into the caller's loop, where it saves most calls of `touch`.
    """
    line = np.uint64(sector) // np.uint64(cache.sectors_per_line)
    bit = np.int64(1) << np.int64(np.uint64(sector) % np.uint64(cache.sectors_per_line))
    entry = cache.entries[np.uint64(copy), set_index(cache, line), np.uint64(0)]
    return entry >> LINE == np.int64(line) and (entry & bit) != 0


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
    line = np.uint64(sector) // np.uint64(cache.sectors_per_line)
    sector_bit = np.int64(1) << np.int64(np.uint64(sector) % np.uint64(cache.sectors_per_line))
    entries, tag = cache.entries[np.uint64(copy), set_index(cache, line)], np.int64(line)
    one, first, last = np.uint64(1), np.uint64(0), np.uint64(cache.entries.shape[2] - 1)

    way = first
    while way < last and entries[way] >> LINE != tag:
        way += one

    entry, evicted = entries[way], 0
    if entry >> LINE != tag:
        evicted = _count_bits(np.uint64(entry >> DIRTY & 0xFF))
        entry = tag << LINE
    hit = (entry & sector_bit) != 0

    while way > first:
        before = way - one
        entries[way] = entries[before]
        way = before
    entries[first] = entry | sector_bit | (sector_bit << DIRTY if write else 0)
    return hit, evicted


def lines_in(cache: Cache, copy: int, line: int) -> Int64[np.ndarray, " ways"]:
    """Return the lines of the set that a line belongs to, the one used last first; -1 where there is none."""
    return cache.entries[copy, set_index(cache, line)] >> LINE


def dirty_sectors(cache: Cache) -> int:
    """Return the number of sectors, over all copies, that are not written back yet."""
    return int(np.bitwise_count(cache.entries >> DIRTY & 0xFF).sum())
