"""Factors from the source's accesses to instructions, read from machine code alone.

The simulator counts the source's accesses. The compiler may merge them, such as four shared loads of neighbours into
one of 128 bits. An instruction's width tells how many accesses of the source it merges, however often the loop around
it was unrolled.
"""

import re

import numpy as np
from jaxtyping import Int64

from labkit.forecast.sass import Sass
from labkit.simulator.counters import COUNTS, REQUESTS, WAVEFRONTS, count_shared
from labkit.trace import WARP_LANES, Trace


def widths_bytes(code: Sass, kind: str) -> list[int]:
    """Return the bytes per lane of each instruction of a kind: `LDG.E.128`, a "global load", moves 16."""
    names = [instruction.name for instruction in code.instructions if instruction.amount(kind)]
    return [next((int(bits) // 8 for bits in re.findall(r"\.[US]?(8|16|64|128)\b", name)), 4) for name in names]


def request_factor(code: Sass, kind: str, trace: Trace) -> float:
    """Return the instructions of a kind over the accesses of the source that they merge."""
    sites = [counted for counted in trace.sites if f"{counted.site.space} {counted.site.kind}" == kind]
    widths = widths_bytes(code, kind)
    accesses = sum(counted.accesses for counted in sites)
    source_widths = [trace.array(counted.site.array).itemsize * counted.site.elements for counted in sites]
    if not widths or not accesses or max(widths) <= max(source_widths):
        return 1.0  # no instruction stands for several accesses
    bytes_an_access = sum(counted.bytes for counted in sites) / accesses
    merged_accesses = max(sum(widths) / bytes_an_access, len(sites))
    return len(widths) / merged_accesses


def wavefront_factor(code: Sass, trace: Trace) -> float:
    """Return the wavefronts of the machine code's shared loads over those of the source.

    A lane's successive loads of neighbours become one, as wide as the widest load in the code. The factor is computed
    from the sampled blocks; it is 1 if they do not explain the instructions of the code.
    """
    widest_bytes = max(widths_bytes(code, "shared load"), default=4)
    source, machine = np.zeros((2, 1, COUNTS), np.int64)
    for number, counted in enumerate(trace.sites):
        site = counted.site
        if (site.space, site.kind) != ("shared", "load"):
            continue
        array = trace.array(site.array)
        merged = max(widest_bytes // (array.itemsize * site.elements), 1)
        for rows in _warps(trace, number):
            accesses_merged = merged if _neighbours(rows, merged) else 1
            for totals, step in ((source, 1), (machine, accesses_merged)):
                _count(rows[::step], array, site.elements * step, totals)
    machine, source = machine[0], source[0]
    if not source[REQUESTS] or machine[REQUESTS] / source[REQUESTS] != request_factor(code, "shared load", trace):
        return 1.0
    return float(machine[WAVEFRONTS] / source[WAVEFRONTS])


def _warps(trace, site):
    """Return the elements that the lanes of each sampled warp read at a site, a row per access."""
    samples = trace.samples
    mine = samples.site == site
    warps = samples.block * (samples.warp.max(initial=0) + 1) + samples.warp
    return [samples.index[mine & (warps == warp)].astype(np.int64) for warp in np.unique(warps[mine])]


def _neighbours(rows: Int64[np.ndarray, "accesses lanes"], count: int) -> bool:
    """Say if the same lanes read `count` neighbours in each `count` accesses, from a multiple of `count` on."""
    if len(rows) % count:
        return False
    first = rows[::count, None, :]
    expected = np.where(first >= 0, first + np.arange(count)[:, None], first)
    return bool((rows.reshape(expected.shape) == expected).all() and (first[first >= 0] % count == 0).all())


def _count(rows, array, width, totals):
    starts = np.arange(0, rows.size, WARP_LANES)
    warps = np.zeros((len(rows), 6), np.int64)
    warps[:, 0], warps[:, 1] = starts, starts + WARP_LANES
    lanes = rows.ravel()
    count_shared(lanes, array.base_address, array.itemsize, width, 0, lanes >= 0, False, True, warps, totals)
