"""Counters of the last block of a grid, from the accesses that its run recorded."""

from collections.abc import Iterator

import numpy as np

from labkit.trace import WARP_LANES, Site, Trace


def count_threads(trace: Trace, space: str, kinds: tuple[str, ...]) -> int:
    """Count the threads with an access of one of these kinds to this space."""
    accesses = (threads for site, threads, _ in _accesses(trace) if site.space == space and site.kind in kinds)
    return len(set().union(*(set(threads.tolist()) for threads in accesses)))


def count_exchanged(trace: Trace) -> int:
    """Count the shared loads of elements that another thread stored last."""
    stored_by: dict[tuple[str, int], int] = {}
    count = 0
    for site, threads, elements in _accesses(trace):
        if site.space != "shared":
            continue
        places = [(site.array, element + i) for element in elements.tolist() for i in range(site.elements)]
        users = np.repeat(threads, site.elements).tolist()
        if site.kind != "store":
            count += sum(stored_by.get(place, user) != user for place, user in zip(places, users, strict=True))
        if site.kind != "load":
            stored_by.update(zip(places, users, strict=True))
    return count


def _accesses(trace: Trace) -> Iterator[tuple[Site, np.ndarray, np.ndarray]]:
    """Yield the site of each access, its threads and their elements."""
    samples = trace.samples
    block = samples.blocks.index(tuple(size - 1 for size in trace.grid))
    for row in np.flatnonzero((samples.block == block) & (samples.site >= 0)):
        lanes = np.flatnonzero(samples.index[row] >= 0)
        yield trace.sites[samples.site[row]].site, WARP_LANES * samples.warp[row] + lanes, samples.index[row, lanes]
