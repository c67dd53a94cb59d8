"""L2, which all SMs share: it sees what their L1s let through, in the order of the warps' own clocks.

As NVIDIA describes the A100 ("NVIDIA A100 Tensor Core GPU Architecture"), L2 may be cut into partitions. Each line has
one for its home, and each SM is next to one, which keeps what the SM asks for of another's lines too. So what all SMs
read lies in every partition, and there is room for less. DRAM is read in pairs of sectors, 64 bytes, as is another
partition. Nsight Compute counts both on an H100.
"""

import numpy as np
from numba import njit

from labkit.simulator.caches import dirty_sectors, make_cache, touch
from labkit.simulator.counters import L2_HITS
from labkit.trace import SECTOR_BYTES

BUFFER_ROWS = 8_000_000
SCHEDULERS = 4  # of an SM; a warp has that of its number modulo 4 (Jia et al., "Dissecting the NVIDIA Volta", 2018)


class L2:
    """The cache, what waits to reach it, and what came of it."""

    def __init__(self, gpu, totals):
        size_bytes = gpu.l2_bytes // gpu.l2_partitions
        self.cache = make_cache(size_bytes, ways=16, copies=gpu.l2_partitions, hashed=True)
        self.totals = totals
        self.sms_per_partition = -(-gpu.sms // gpu.l2_partitions)
        self.sectors = self.fetched = self.written_back = 0
        self._buffer = np.empty((0, 4), np.int64)
        self._waiting: list[tuple] = []
        self._waiting_rows = 0

    def rows(self, count):
        """Room for (clock, warp, sector, SM) of so many requests; the next call gives the same room."""
        if len(self._buffer) < count:
            self._buffer = np.empty((count, 4), np.int64)
        return self._buffer

    def send(self, rows, site, writes):
        """One warp instruction's requests; they wait until the wave has run, or the buffer is full."""
        self._waiting.append((rows.copy(), site, writes))
        self._waiting_rows += len(rows)
        if self._waiting_rows > BUFFER_ROWS:
            self.flush()

    def flush(self):
        """Lets all that waits reach the cache: by the clock of its warp, then by scheduler, then by warp.

        No order at one clock is right for all: on an H100 neighbouring warps that share a pair of sectors hit less
        often than when each follows the other, and so they do here, where they belong to different schedulers.
        """
        if not self._waiting:
            return
        rows = np.concatenate([r for r, _, _ in self._waiting])
        lengths = [len(r) for r, _, _ in self._waiting]
        sites = np.repeat([s for _, s, _ in self._waiting], lengths)
        writes = np.repeat([w for _, _, w in self._waiting], lengths)
        order = np.arange(len(rows))
        for key in (rows[:, 1], rows[:, 1] % SCHEDULERS, rows[:, 0]):
            order = _stable_sort(key, order)
        rows[:, 3] //= self.sms_per_partition
        fetched, written_back = _replay(self.cache, order, rows, sites, writes, self.totals)
        self.fetched += fetched
        self.written_back += written_back
        self.sectors += len(rows)
        self._waiting.clear()
        self._waiting_rows = 0

    @property
    def bytes_read(self) -> int:
        """What loads brought from DRAM."""
        return self.fetched * SECTOR_BYTES

    @property
    def dirty_bytes(self) -> int:
        """What was stored and is yet to be written back to DRAM."""
        return int(dirty_sectors(self.cache)) * SECTOR_BYTES

    @property
    def bytes_written(self) -> int:
        """What was written back to DRAM, or will be."""
        return self.written_back * SECTOR_BYTES + self.dirty_bytes


class NoL2:
    """In place of L2 where a sample of the grid runs: the blocks that it leaves out share L2 too, so none can tell."""

    def __init__(self):
        self._buffer = np.empty((0, 4), np.int64)

    def rows(self, count):
        if len(self._buffer) < count:
            self._buffer = np.empty((count, 4), np.int64)
        return self._buffer

    def send(self, rows, site, writes):
        """What the blocks ask of L2 is counted already: the sectors that L1 lacked."""


@njit(cache=True)
def _stable_sort(keys, order):
    """`order`, sorted by `keys`; equal ones stay as they are. Counts them, since the keys are small and many."""
    first = keys.min()
    places = np.zeros(keys.max() - first + 2, np.int64)
    for key in keys:
        places[key - first + 1] += 1
    places = np.cumsum(places)
    result = np.empty_like(order)
    for row in order:
        result[places[keys[row] - first]] = row
        places[keys[row] - first] += 1
    return result


@njit(cache=True)
def _replay(l2, order, rows, sites, writes, totals):
    """Feeds L2 in `order`, adds hits to each site's totals; the sectors that DRAM gave, and those it was given.

    `rows` are (clock, warp, sector, partition next to the SM).
    """
    fetched = written_back = 0
    partitions = l2.lines.shape[0]
    clock = warp = sector = -1
    hit = False
    for i in order:
        with_last = rows[i, 0] == clock and rows[i, 1] == warp and rows[i, 2] == sector ^ 1
        clock, warp, sector, write = rows[i, 0], rows[i, 1], rows[i, 2], writes[i]
        near = rows[i, 3]
        home = _home_partition(sector // l2.sectors_per_line, partitions)
        found, brought, evicted = _access_partition(l2, near, sector, write and near == home, write)
        written_back += evicted
        if home != near and (write or not found):
            _, brought, evicted = _access_partition(l2, home, sector, write, write)
            written_back += evicted
        if home == near or not found:
            fetched += brought
        # both sectors of a pair that one instruction asks for are missed together
        hit = found and (hit or not with_last)
        if hit:
            totals[sites[i], L2_HITS] += 1
    return fetched, written_back


@njit(cache=True)
def _access_partition(l2, partition, sector, dirty, write):
    """Whether a partition had the sector, how many sectors a load made it bring in, and how many it put out."""
    hit, evicted = touch(l2, partition, sector, dirty, True)
    if hit or write:
        return hit, 0, evicted
    other, _ = touch(l2, partition, sector ^ 1, False, True)
    return False, 1 if other else 2, evicted


@njit(cache=True)
def _home_partition(line, partitions):
    """The partition of a line, by the parity of its bits: whatever the stride, as many lines go to each of two."""
    parity = 0
    while line:
        line &= line - 1
        parity += 1
    return parity % partitions
