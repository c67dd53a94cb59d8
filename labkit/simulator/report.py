"""What a launch did, as a `Trace`."""

import numpy as np

from labkit.simulator import advice
from labkit.simulator.arrays import Array
from labkit.simulator.counters import ACCESSES, CONFLICTS, L1_HITS, L2_HITS, REQUESTS, SECTORS, WAVEFRONTS
from labkit.trace import WARP_LANES, ArrayInfo, Counters, Samples, SiteCounters, Trace


def trace(launch, given) -> Trace:
    """The trace of a launch that has run; `given` are its arguments as the caller passed them."""
    counted = [
        SiteCounters(
            site,
            accesses=int(row[ACCESSES]),
            requests=int(row[REQUESTS]),
            bytes=int(row[ACCESSES]) * site.elements * np.dtype(_dtype_name(site.dtype)).itemsize,
            sectors=int(row[SECTORS]),
            wavefronts=int(row[WAVEFRONTS]),
            bank_conflicts=int(row[CONFLICTS]),
            l1_hits=int(row[L1_HITS]),
            l2_hits=int(row[L2_HITS]),
        )
        for site, row in zip(launch.sites, launch.totals)
    ]
    found = [*launch.log.finished(), *launch.program.advice.values()]
    if not any(f.kind == "deadlock" for f in found):
        found += advice.unwritten(launch)
    found += [*advice.slow_accesses(launch, counted), *advice.idle_lanes(launch), *advice.changed_globals(launch)]
    found.sort(key=lambda f: (f.severity != "error", f.line, f.column))
    return Trace(
        kernel=launch.function.__name__,
        source=launch.source.text,
        filename=launch.source.filename,
        first_line=launch.source.first_line,
        grid=launch.grid,
        block=launch.block,
        gpu=launch.gpu.name,
        shared_bytes=launch.shared_bytes,
        outputs=tuple(
            launch.regions[a.name].view(value).copy() if isinstance(a, Array) else value
            for a, value in zip(launch.arguments, given, strict=True)
        ),
        arrays=_array_infos(launch),
        sites=tuple(counted),
        counters=_counters(launch, counted),
        findings=tuple(found),
        samples=_samples(launch),
        steps=tuple(launch.inspected),
        printed=tuple(launch.printed),
    )


def _array_infos(launch):
    infos = [
        ArrayInfo(a.name, a.space, a.shape, str(a.dtype), a.itemsize, a.address + (a.offset * a.itemsize), a.line)
        for a in (*launch.arguments, *launch.captured.values(), *launch.program.constants.values())
        if isinstance(a, Array)
    ]
    for number, a in enumerate(launch.program.allocations.values()):
        shape, address = launch.shared_layout[number] if a.space == "shared" else (a.shape, 0)
        infos.append(ArrayInfo(a.name, a.space, shape, str(a.dtype), a.dtype.itemsize, address, a.line))
    return tuple(infos)


def _counters(launch, counted) -> Counters:
    def total(space, kind, name):
        return sum(getattr(c, name) for c in counted if c.site.space == space and c.site.kind == kind)

    global_sites = [c for c in counted if c.site.space == "global"]
    return Counters(
        global_loads=total("global", "load", "accesses"),
        global_stores=total("global", "store", "accesses"),
        global_atomics=total("global", "atomic", "accesses"),
        shared_loads=total("shared", "load", "accesses"),
        shared_stores=total("shared", "store", "accesses"),
        shared_atomics=total("shared", "atomic", "accesses"),
        global_load_requests=total("global", "load", "requests"),
        global_store_requests=total("global", "store", "requests"),
        global_load_sectors=total("global", "load", "sectors"),
        global_store_sectors=total("global", "store", "sectors"),
        global_bytes=sum(c.bytes for c in global_sites),
        shared_load_wavefronts=total("shared", "load", "wavefronts"),
        shared_store_wavefronts=total("shared", "store", "wavefronts"),
        bank_conflicts=sum(c.bank_conflicts for c in counted),
        l1_hits=sum(c.l1_hits for c in counted),
        l2_hits=sum(c.l2_hits for c in counted),
        l2_sectors=launch.l2.sectors,
        dram_read_bytes=launch.l2.bytes_read,
        dram_write_bytes=launch.l2.bytes_written,
        l2_dirty_bytes=launch.l2.dirty_bytes,
        flops=sum(launch.flops.values()),
        flops_by_dtype=dict(launch.flops),
        barriers=launch.barriers,
    )


def _samples(launch) -> Samples:
    numbers = {block: number for number, block in enumerate(launch.recorded)}
    warps = launch.warps_per_block
    parts = []
    for block, site, threads, places in launch.sampled:
        if site < 0:  # a barrier, whose line stands in place of the threads
            parts.append((numbers[block], site, np.arange(warps), threads, np.full((warps, WARP_LANES), -1)))
            continue
        index = np.full(warps * WARP_LANES, -1, np.int64)
        index[threads] = places
        index = index.reshape(warps, WARP_LANES)
        present = np.unique(threads // WARP_LANES) if len(threads) < launch.threads else np.arange(warps)
        parts.append((numbers[block], site, present, launch.sites[site].line, index[present]))
    lengths = [len(p[2]) for p in parts]

    def column(position):
        return np.repeat(np.array([p[position] for p in parts], np.int64), lengths)

    warp = np.concatenate([p[2] for p in parts]) if parts else np.zeros(0, np.int64)
    index = np.concatenate([p[4] for p in parts]) if parts else np.zeros((0, WARP_LANES), np.int64)
    return Samples(tuple(launch.recorded.values()), column(0), column(1), warp, column(3), index)


def _dtype_name(name):
    """NumPy's name for the elements of numba's type."""
    return {"boolean": "bool", "bfloat16": "uint16"}.get(name, name)
