"""The access at which a run goes wrong: of which thread, and to which element."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from jaxtyping import Bool

from labkit.trace import WARP_LANES, Finding, ThreadId, Trace

MOST_REQUESTS = 100_000  # of a launch that is run once more for the accesses of all its blocks


@dataclass(frozen=True)
class FailingAccess:
    """An access of a thread at a line; `element` is the flat index in the array, None if it is outside or unknown."""

    thread: ThreadId
    warp: int
    line: int
    array: str = ""
    element: int | None = None


def find_access(trace: Trace, finding: Finding) -> FailingAccess | None:
    """Return the access that an error is about; None if it names no thread."""
    if not finding.threads:
        return None
    thread = finding.threads[0]
    x, y, z = thread.thread
    width, height, _ = trace.block
    warp = (x + width * (y + height * z)) // WARP_LANES
    return FailingAccess(thread, warp, finding.line, finding.array or "", _find_element(trace, finding))


def _find_element(trace, finding):
    shape = next((info.shape for info in trace.arrays if info.name == finding.array), None)
    index = finding.index
    if shape is None or index is None or len(index) != len(shape):
        return None
    is_inside = all(0 <= i < size for i, size in zip(index, shape, strict=True))
    return int(np.ravel_multi_index(index, shape)) if is_inside and shape else None


def find_stores(trace: Trace, array: str, element: int) -> list[FailingAccess]:
    """Return the stores of recorded blocks to an element, in the order of their execution."""
    samples = trace.samples
    stores = [number for number, counters in enumerate(trace.sites) if counters.site.kind != "load"]
    lanes = touches(trace, array, element) & np.isin(samples.site, stores)[:, None]
    found = []
    for row, lane in np.argwhere(lanes).tolist():
        warp = int(samples.warp[row])
        thread = _thread_at(warp * WARP_LANES + lane, trace.block)
        block = samples.blocks[samples.block[row]]
        found.append(FailingAccess(ThreadId(block, thread), warp, int(samples.line[row]), array, element))
    return found


def _thread_at(number, block):
    width, height, _ = block
    return number % width, number // width % height, number // (width * height)


def touches(trace: Trace, array: str, element: int) -> Bool[np.ndarray, "rows lanes"]:
    """Return by row of the samples which lanes access an element."""
    sites = [counters.site for counters in trace.sites]
    widths = np.array([*(site.elements if site.array == array else 0 for site in sites), 0])  # the last: of a barrier
    first = trace.samples.index
    return (first >= 0) & (first <= element) & (element < first + widths[trace.samples.site][:, None])


def keep_block(trace: Trace, block: tuple[int, int, int]) -> Trace:
    """Return a trace with the accesses of one of its recorded blocks alone."""
    samples = trace.samples
    rows = samples.block == samples.blocks.index(block)
    columns = {name: getattr(samples, name)[rows] for name in ("site", "warp", "line", "index")}
    samples = replace(samples, blocks=(block,), block=np.zeros(rows.sum(), np.int64), **columns)
    return replace(trace, samples=samples)


def list_blocks(trace: Trace) -> tuple[tuple[int, int, int], ...]:
    """Return all blocks of a launch; none if it is too large to record them."""
    if sum(counters.requests for counters in trace.sites) > MOST_REQUESTS:
        return ()
    return tuple(_thread_at(number, trace.grid) for number in range(prod(trace.grid)))
