"""Counters of the blocks whose accesses a run recorded: the first and the last of a grid, where a check asks.

Each is that of the block with the fewest, so that no block may leave its work to others.
"""

from collections.abc import Iterator

import numpy as np

from labkit.trace import WARP_LANES, Site, Trace


def count_threads(trace: Trace, space: str, kinds: tuple[str, ...]) -> int:
    """Count the threads with an access of one of these kinds to this space."""
    return min(_count_threads(trace, block, space, kinds) for block in range(len(trace.samples.blocks)))


def count_exchanged(trace: Trace) -> int:
    """Count the shared loads of elements that another thread stored last."""
    return min(_count_exchanged(trace, block) for block in range(len(trace.samples.blocks)))


def _count_threads(trace, block, space, kinds):
    samples, sites = trace.samples, enumerate(trace.sites)
    wanted = [number for number, each in sites if each.site.space == space and each.site.kind in kinds]
    rows = (samples.block == block) & np.isin(samples.site, wanted)
    warp, lane = np.nonzero(samples.index[rows] >= 0)
    return len(np.unique(WARP_LANES * samples.warp[rows][warp] + lane))


def _count_exchanged(trace, block):
    stored_by: dict[tuple[str, int], int] = {}
    count = 0
    for site, threads, elements in _accesses(trace, block):
        if site.space != "shared":
            continue
        places = [(site.array, element + i) for element in elements.tolist() for i in range(site.elements)]
        users = np.repeat(threads, site.elements).tolist()
        if site.kind != "store":
            count += sum(stored_by.get(place, user) != user for place, user in zip(places, users, strict=True))
        if site.kind != "load":
            stored_by.update(zip(places, users, strict=True))
    return count


def _accesses(trace, block) -> Iterator[tuple[Site, np.ndarray, np.ndarray]]:
    """Yield the site of each access of a block, its threads and their elements."""
    samples = trace.samples
    for row in np.flatnonzero((samples.block == block) & (samples.site >= 0)):
        lanes = np.flatnonzero(samples.index[row] >= 0)
        yield trace.sites[samples.site[row]].site, WARP_LANES * samples.warp[row] + lanes, samples.index[row, lanes]
