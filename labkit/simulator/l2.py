"""L2, which all SMs share: it gets what their L1s miss, in the order of the warps' own clocks.

L2 may be divided into partitions, as NVIDIA describes the A100 ("NVIDIA A100 Tensor Core GPU Architecture"). Each line
has a home partition. Each SM is next to one partition, which also keeps the lines of others that the SM requests. So a
line that all SMs read is in every partition, and the capacity is smaller. DRAM and other partitions are read in pairs
of sectors, 64 bytes. Nsight Compute counts both on an H100.
"""

import numpy as np

from labkit.simulator.caches import dirty_sectors, make_cache, touch
from labkit.simulator.counters import L2_HITS
from labkit.simulator.seam import inner_njit, njit
from labkit.trace import SECTOR_BYTES

BUFFER_ROWS = 8_000_000
WRITES, SITE = 8, 16  # bits of a request's last number, above those of a partition
SCHEDULERS = 4  # per SM; a warp's is its number modulo 4 (Jia et al., "Dissecting the NVIDIA Volta", 2018)


class L2:
    """The cache, the requests that wait to reach it, and its counts."""

    def __init__(self, gpu, totals):
        size_bytes = gpu.l2_bytes // gpu.l2_partitions
        self.cache = make_cache(size_bytes, ways=16, copies=gpu.l2_partitions, hashed=True)
        self.totals = totals
        self.sms_per_partition = -(-gpu.sms // gpu.l2_partitions)
        self.sectors = self.fetched = self.written_back = 0
        self._buffer = self._waiting = self._ordered = np.empty((0, 4), np.int64)
        self._count = 0

    def rows(self, count):
        """Return space for (clock, warp, sector, SM) of `count` requests; the next call returns the same space."""
        if count > len(self._buffer):
            self._buffer = _with_room(self._buffer, count)
        return self._buffer

    def send(self, rows, site, writes):
        """Queue one warp instruction's requests until the wave has run, or the buffer is full."""
        start, self._count = self._count, self._count + len(rows)
        self._waiting = _with_room(self._waiting, self._count)
        _queue(rows, self._waiting, start, self.sms_per_partition, (site << SITE) + (writes << WRITES))
        if self._count > BUFFER_ROWS:
            self.flush()

    def flush(self):
        """Send the queue to the cache: by the clock of its warp, then by scheduler, then by warp.

        No order at one clock is right for all. On an H100, neighbouring warps that share a pair of sectors hit less
        often than when each follows the other. Here they do too, because they belong to different schedulers.
        """
        if not self._count:
            return
        rows = self._waiting[: self._count]
        self._ordered = _with_room(self._ordered, self._count)
        ordered = rows.take(_order(rows[:, 0], rows[:, 1]), axis=0, out=self._ordered[: self._count], mode="clip")
        fetched, written_back = _replay(self.cache, ordered, self.totals)
        self.fetched += fetched
        self.written_back += written_back
        self.sectors += self._count
        self._count = 0

    @property
    def bytes_read(self) -> int:
        """Bytes that loads read from DRAM."""
        return self.fetched * SECTOR_BYTES

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were stored and are not written back to DRAM yet."""
        return dirty_sectors(self.cache) * SECTOR_BYTES

    @property
    def bytes_written(self) -> int:
        """Bytes that were written back to DRAM, or will be."""
        return self.written_back * SECTOR_BYTES + self.dirty_bytes


class NoL2:
    """Placeholder for L2 in runs that do not count its hits, such as a sample: the blocks left out share L2 too."""

    def __init__(self):
        self._buffer = np.empty((0, 4), np.int64)

    rows = L2.rows

    def send(self, rows, site, writes):
        """Drop the requests; the sectors that L1 missed are counted already."""

    def flush(self):
        """Do nothing: no request waits."""


def _with_room(rows, count):
    """Return the rows, with space for `count` of them."""
    if count <= len(rows):
        return rows
    larger = np.empty((max(count, 2 * len(rows)), 4), np.int64)
    larger[: len(rows)] = rows
    return larger


def _order(clock, warp):
    """Return the order by clock, then by scheduler, then by warp.

    Most requests come in the order of their warps: then one sort by clock and scheduler is enough.
    """
    keys = (clock - clock.min()) * SCHEDULERS + warp % SCHEDULERS
    order = _stable_sort(keys, np.arange(len(keys)))
    keys, warp = keys.take(order), warp.take(order)
    if ((warp[1:] < warp[:-1]) & (keys[1:] == keys[:-1])).any():
        order = order[np.lexsort((warp, keys))]
    return order


def _stable_sort(keys, order):
    """Return `order` sorted by keys of at least 0, stably: 16 bits at a time, which NumPy sorts by their digits."""
    for shift in range(0, int(keys.max()).bit_length(), 16):
        digits = (keys >> shift).astype(np.uint16)
        order = order.take(np.argsort(digits if shift == 0 else digits.take(order), kind="stable"))
    return order


@njit(cache=True)
def _queue(rows, waiting, start, sms_per_partition, of_site):
    """Copy requests behind those that wait, each with the partition next to its SM and the bits of its site."""
    for i in range(rows.shape[0]):
        for column in range(3):
            waiting[start + i, column] = rows[i, column]
        waiting[start + i, 3] = rows[i, 3] // sms_per_partition + of_site


@njit(cache=True)
def _replay(l2, rows, totals):
    """Send requests to L2, and add hits to each site's totals; return the sectors read and written in DRAM.

    `rows` are (clock, warp, sector, partition next to the SM with the bits of WRITES and SITE).
    """
    fetched = written_back = 0
    partitions = l2.entries.shape[0]
    clock = warp = sector = -1
    hit = False
    for i in range(len(rows)):
        with_last = rows[i, 0] == clock and rows[i, 1] == warp and rows[i, 2] == sector ^ 1
        clock, warp, sector = rows[i, 0], rows[i, 1], rows[i, 2]
        near, write, site = rows[i, 3] & 0xFF, (rows[i, 3] >> WRITES & 1) == 1, rows[i, 3] >> SITE
        home = _home_partition(sector // l2.sectors_per_line, partitions)
        found, brought, evicted = _access_partition(l2, near, sector, write and near == home, write)
        written_back += evicted
        if home != near and (write or not found):
            _, brought, evicted = _access_partition(l2, home, sector, write, write)
            written_back += evicted
        if home == near or not found:
            fetched += brought
        # both sectors of a pair that one instruction requests are missed together
        hit = found and (hit or not with_last)
        if hit:
            totals[site, L2_HITS] += 1
    return fetched, written_back


@inner_njit
def _access_partition(l2, partition, sector, dirty, write):
    """Return whether a partition had the sector, how many a load read into it, and how many it evicted."""
    hit, evicted = touch(l2, partition, sector, dirty)
    if hit or write:
        return hit, 0, evicted
    other, _ = touch(l2, partition, sector ^ 1, write)  # a variable: numba would compile a literal anew
    return False, 1 if other else 2, evicted


@inner_njit
def _home_partition(line, partitions):
    """Return the partition of a line, by the parity of its bits: equally many lines to each of two for any stride."""
    parity = 0
    while line:
        line &= line - 1
        parity += 1
    return parity % partitions
