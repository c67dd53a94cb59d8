"""Set-associative, sectored, write-back caches that replace the least recently used line, for njit code.

One model serves a GPU's L1 (a copy for each SM), its L2, and a CPU's levels (where a line is one sector). A line's
address chooses its set: in a CPU by its lowest bits, so that a stride of a power of two finds few sets; in a GPU by a
hash (C. Nugteren et al., "A Detailed GPU Cache Model Based on Reuse Distance Theory", HPCA 2014, found one; this one is
of the same kind, and lines one after the other still find a set each).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8
from numba import njit

from labkit.machine.gpus import Gpu
from labkit.machine.occupancy import occupancy, shared_allocation


class Cache(NamedTuple):
    """The state of `copies` equal caches; numba passes it to compiled code as it is.

    The ways of a set stand in order of use, the latest first. `lines` holds the line in each way, -1 if none;
    `valid` and `dirty` have a bit for each of the line's sectors. `hashed` says how lines find their sets.
    """

    lines: Int64[np.ndarray, "copies sets ways"]
    valid: UInt8[np.ndarray, "copies sets ways"]
    dirty: UInt8[np.ndarray, "copies sets ways"]
    sectors_per_line: int
    hashed: bool


def make_cache(
    size_bytes: int, ways: int, line_bytes: int = 128, sector_bytes: int = 32, copies: int = 1, hashed: bool = False
) -> Cache:
    """Empty caches of `size_bytes` each, rounded down to whole sets (any number of them)."""
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
    """Blocks that one SM holds at a time, where their threads have the usual number of registers."""
    return max(1, occupancy(gpu, threads, shared_bytes).blocks)


def l1_bytes(gpu: Gpu, threads: int, shared_bytes: int) -> int:
    """What an SM has for its L1: its memory, less the smallest choice that holds the shared memory of its blocks."""
    needed = resident_blocks(gpu, threads, shared_bytes) * shared_allocation(gpu, shared_bytes)
    return gpu.l1_bytes - min((c for c in gpu.shared_bytes_choices if c >= needed), default=gpu.shared_bytes_per_sm)


def make_l1(gpu: Gpu, threads: int, shared_bytes: int, copies: int) -> Cache:
    """The empty L1 of each of `copies` SMs that run blocks of that many threads and shared bytes."""
    return make_cache(l1_bytes(gpu, threads, shared_bytes), ways=16, copies=copies, hashed=True)


@njit(cache=True)
def _count_bits(mask):
    count = 0
    while mask:
        mask &= mask - np.uint64(1)
        count += 1
    return count


@njit(cache=True)
def set_index(cache: Cache, line: int) -> int:
    """The set that a line goes to: its lowest bits choose it, and a hash folds all higher ones on them, by seven."""
    line = np.uint64(line)
    if cache.hashed:
        line ^= line >> np.uint64(7)
        line ^= line >> np.uint64(14)
    return line % np.uint64(cache.lines.shape[1])


@njit(cache=True)
def is_latest(cache: Cache, copy: int, sector: int) -> bool:
    """Is the sector in the latest line of its set? Then reading it again changes nothing.

    Small enough to be compiled into the caller's loop, where it spares most calls of `touch`.
    """
    line = np.uint64(sector) // np.uint64(cache.sectors_per_line)
    bit = np.uint64(1) << (np.uint64(sector) % np.uint64(cache.sectors_per_line))
    copy, row, first = np.uint64(copy), set_index(cache, line), np.uint64(0)
    return cache.lines[copy, row, first] == np.int64(line) and (cache.valid[copy, row, first] & bit) != 0


# Unsigned indices spare numba's check for negative ones, which halves the speed here.
@njit(cache=True)
def touch(cache: Cache, copy: int, sector: int, write: bool, allocate: bool) -> tuple[bool, int]:
    """Access one sector (byte address // sector_bytes) of one copy.

    Parameters
    ----------
    write : bool
        Marks the sector dirty, if it is in the cache after the access.
    allocate : bool
        Brings a missing sector in; if its line is missing too, the least recently used line makes room.

    Returns
    -------
    hit : bool
        Whether the sector was there before.
    dirty_sectors_evicted : int
        Sectors that had to be written back to make room.
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
    if not (hit or allocate):
        return False, 0
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


@njit(cache=True)
def dirty_sectors(cache: Cache) -> int:
    """Sectors, over all copies, that are yet to be written back."""
    count = 0
    for mask in cache.dirty.flat:
        count += _count_bits(np.uint64(mask))
    return count
