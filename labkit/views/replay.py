"""The sampled loads of a trace, sent through a cache: which sectors came in and which were pushed out, step by step."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from labkit.simulator.caches import Cache, touch
from labkit.trace import SECTOR_BYTES, ArrayInfo, Trace


@dataclass(frozen=True)
class Replay:
    """Loads that went through a cache, one row a step.

    `array` counts in `arrays`; `elements` holds the flat index that each lane read (-1: it took no part).
    `moves` has a row for each sector that came in or was pushed out: step, array, sector (counted from the
    first of its array), and 1 for in, 0 for out.
    """

    arrays: tuple[ArrayInfo, ...]
    sector_bytes: int
    array: Int64[np.ndarray, " steps"]
    line: Int64[np.ndarray, " steps"]
    warp: Int64[np.ndarray, " steps"]
    elements: Int64[np.ndarray, "steps lanes"]
    moves: Int64[np.ndarray, "moves 4"]
    left_out: int

    @property
    def sector_reads(self) -> int:
        """Sectors asked for, each once a step."""
        used = self.elements >= 0
        bases = np.array([info.base_address for info in self.arrays])
        sizes = np.array([info.itemsize for info in self.arrays])
        sectors = (bases[self.array, None] + self.elements * sizes[self.array, None]) // self.sector_bytes
        sectors = np.sort(np.where(used, sectors, -1), axis=1)
        first = np.diff(sectors, axis=1, prepend=-1) != 0
        return int(first.sum())

    @property
    def misses(self) -> int:
        return int(self.moves[:, 3].sum())

    @property
    def hit_rate(self) -> float:
        return 1 - self.misses / self.sector_reads if self.sector_reads else 0.0


def replay(trace: Trace, cache: Cache, sector_bytes: int = SECTOR_BYTES, steps: int = 20_000) -> Replay:
    """Send the first `steps` sampled loads of global arrays through an empty cache, in the order they happened."""
    sites = [counters.site for counters in trace.sites]
    loads = [i for i, site in enumerate(sites) if site.space == "global" and site.kind == "load"]
    arrays = tuple(trace.array(name) for name in dict.fromkeys(sites[i].array for i in loads))
    position = {info.name: i for i, info in enumerate(arrays)}
    rows = np.flatnonzero(np.isin(trace.samples.site, loads))
    kept = rows[:steps]
    array = np.array([position[sites[site].array] for site in trace.samples.site[kept]], np.int64)
    elements = trace.samples.index[kept].astype(np.int64)

    moves = []
    owner = {}  # of the sectors in the cache, each with its array
    for step, (of, lanes) in enumerate(zip(array.tolist(), elements)):
        address = arrays[of].base_address + lanes[lanes >= 0] * arrays[of].itemsize
        for sector in dict.fromkeys((address // sector_bytes).tolist()):
            pushed_out = _pushed_out(cache, sector)
            hit, _ = touch(cache, 0, sector, False, True)
            if hit:
                continue
            for old in [s for s in pushed_out if s in owner]:
                moves.append((step, owner.pop(old), old, 0))
            owner[sector] = of
            moves.append((step, of, sector, 1))
    moves = np.array(moves, np.int64).reshape(-1, 4)
    first_sector = np.array([info.base_address // sector_bytes for info in arrays], np.int64)
    moves[:, 2] -= first_sector[moves[:, 1]]
    return Replay(
        arrays, sector_bytes, array, trace.samples.line[kept], trace.samples.warp[kept], elements, moves,
        left_out=len(rows) - len(kept),
    )  # fmt: skip


def _pushed_out(cache, sector):
    """The sectors of the line that makes room if `sector`'s line is not in the cache."""
    lines = cache.lines[0]
    line = sector // cache.sectors_per_line
    ways = lines[line % len(lines)]
    if line in ways:
        return range(0)
    first = int(ways[-1]) * cache.sectors_per_line
    return range(first, first + cache.sectors_per_line)
