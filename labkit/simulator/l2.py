"""L2, which all SMs share: it sees what their L1s let through, in the order of the warps' own clocks."""

import numpy as np
from numba import njit

from labkit.simulator.caches import dirty_sectors, make_cache
from labkit.simulator.counters import L2_HITS, replay_l2
from labkit.trace import SECTOR_BYTES

BUFFER_ROWS = 8_000_000


class L2:
    """The cache, what waits to reach it, and what came of it."""

    def __init__(self, gpu, sites, totals):
        self.cache = make_cache(gpu.l2_bytes, ways=16)
        self.totals = totals
        self.loads = np.array([site.kind == "load" for site in sites], np.bool_)
        self.sectors = self.reads = self.written_back = 0
        self._buffer = np.empty((0, 3), np.int64)
        self._waiting: list[tuple] = []
        self._waiting_rows = 0

    def rows(self, count):
        """Room for (clock, block, sector) of so many requests; the next call gives the same room."""
        if len(self._buffer) < count:
            self._buffer = np.empty((count, 3), np.int64)
        return self._buffer

    def send(self, rows, site, writes):
        """One warp instruction's requests; they wait until the wave has run, or the buffer is full."""
        self._waiting.append((rows.copy(), site, writes))
        self._waiting_rows += len(rows)
        if self._waiting_rows > BUFFER_ROWS:
            self.flush()

    def flush(self):
        """Lets all that waits reach the cache: in the order of the warps' own clocks, then of blocks."""
        if not self._waiting:
            return
        rows = np.concatenate([r for r, _, _ in self._waiting])
        lengths = [len(r) for r, _, _ in self._waiting]
        sites = np.repeat([s for _, s, _ in self._waiting], lengths)
        writes = np.repeat([w for _, _, w in self._waiting], lengths)
        order = _sorted_by(rows[:, 0], _sorted_by(rows[:, 1], np.arange(len(rows))))
        sectors = np.ascontiguousarray(rows[:, 2])
        self.written_back += replay_l2(self.cache, order, sectors, sites, writes, self.totals)
        self.sectors += len(rows)
        self.reads += int((~writes).sum())
        self._waiting.clear()
        self._waiting_rows = 0

    @property
    def bytes_read(self) -> int:
        """What the misses of loads brought from DRAM."""
        return (self.reads - int(self.totals[self.loads, L2_HITS].sum())) * SECTOR_BYTES

    @property
    def bytes_written(self) -> int:
        """What was written back to DRAM, or will be."""
        return (self.written_back + int(dirty_sectors(self.cache))) * SECTOR_BYTES


class NoL2:
    """In place of L2 where a sample of the grid runs: the blocks that it leaves out share L2 too, so none can tell."""

    def __init__(self):
        self._buffer = np.empty((0, 3), np.int64)

    def rows(self, count):
        if len(self._buffer) < count:
            self._buffer = np.empty((count, 3), np.int64)
        return self._buffer

    def send(self, rows, site, writes):
        """What the blocks ask of L2 is counted already: the sectors that L1 lacked."""


@njit(cache=True)
def _sorted_by(keys, order):
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
