"""The `Trace` of a launch that has run."""

from dataclasses import asdict, replace

import numpy as np

from labkit.layout import c_strides
from labkit.simulator import advice
from labkit.simulator.arrays import Array
from labkit.simulator.checks.same_memory import lost_elements
from labkit.simulator.checks.strides import repeated_elements
from labkit.simulator.counters import ACCESSES, ALONE, CONFLICTS, L1_HITS, L2_HITS, REQUESTS, SECTORS, WAVEFRONTS
from labkit.simulator.limits import MAX_SAMPLED_LANES
from labkit.simulator.tensor_maps import BoxedArray
from labkit.trace import WARP_LANES, ArrayInfo, Counters, Sample, Samples, SiteCounters, Trace


def make_trace(launch, kernel_arguments, caller_arguments) -> Trace:
    """Return the trace of a launch, from the arguments as the kernel took them and as its caller passed them."""
    if launch.plan:
        totals, counters = _estimate(launch)
        site_counters = _site_counters(launch, totals)
    else:
        site_counters = _site_counters(launch, launch.totals)
        counters = _counters(launch, site_counters)
    findings = [*launch.log.finished(), *launch.program.advice.values()]
    if launch.plan:
        findings.append(advice.sample_advice(launch, counters))
    elif not any(f.kind == "deadlock" for f in findings):
        findings += advice.lost_results(launch)
        findings += advice.parted_lanes(launch)
        has_errors = any(f.severity == "error" for f in findings)  # why, perhaps, no thread came to a store
        if launch.is_checked and not has_errors:
            findings += advice.unreached_stores(launch)
    if not launch.is_checked:
        findings.append(advice.time_limit_advice(launch))
    findings += [*advice.slow_accesses(launch, site_counters), *advice.idle_lanes(launch), *advice.partial_wave(launch)]
    findings += [*advice.one_axis(launch), *advice.changed_globals(launch)]
    if not any(f.kind == "race" for f in findings):  # which would have the same cause
        findings += [*lost_elements(launch), *([] if launch.plan else repeated_elements(launch))]
    findings.sort(key=_sort_key)
    return Trace(
        kernel=launch.function.__name__,
        source=launch.source.text,
        filename=launch.source.filename,
        first_line=launch.source.first_line,
        grid=launch.grid,
        block=launch.block,
        gpu=launch.gpu.name,
        shared_bytes=launch.shared_bytes,
        outputs=() if launch.plan else _outputs(launch, kernel_arguments, caller_arguments),
        arrays=_array_infos(launch),
        sites=tuple(site_counters),
        counters=counters,
        findings=tuple(findings),
        float64_lines=tuple(sorted(launch.program.float64_lines)),
        samples=_samples(launch),
        events=tuple(launch.events.kept),
        steps=tuple(launch.inspected),
        printed=tuple(launch.printed),
        blank=launch.blank(),
        raised=launch.raised,
    )


def _sort_key(finding):
    """Return the order of a finding: errors first, by line; in-flight copies of one line in two iterations last."""
    again = finding.kind == "in-flight" and finding.other_line == finding.line
    return finding.severity != "error", again, finding.line, finding.column


def _outputs(launch, kernel_arguments, caller_arguments):
    """Return the arguments after the run, of the dtypes that they were passed with."""
    outputs = []
    for out, before in zip(launch.outputs(kernel_arguments), caller_arguments, strict=True):
        before = before.array if isinstance(before, BoxedArray) else before
        out = out.view(before.dtype) if isinstance(out, np.ndarray) else out
        outputs.append(out[()] if isinstance(before, np.void) else out)
    return tuple(outputs)


def _site_counters(launch, totals) -> list[SiteCounters]:
    return [
        SiteCounters(
            site,
            accesses=int(row[ACCESSES]),
            requests=int(row[REQUESTS]),
            bytes=int(row[ACCESSES]) * site.bytes,
            sectors=int(row[SECTORS]),
            wavefronts=int(row[WAVEFRONTS]),
            bank_conflicts=int(row[CONFLICTS]),
            l1_hits=int(row[L1_HITS]),
            l2_hits=None if launch.plan else int(row[L2_HITS]),
            alone=int(row[ALONE]),
            past_l1=number in launch.program.past_l1,
        )
        for number, (site, row) in enumerate(zip(launch.sites, totals))
    ]


def _array_infos(launch):
    infos = [
        _array_info(a, a.shape, a.strides, a.address + a.offset * a.itemsize)
        for a in (*launch.arrays.values(), *launch.captured.values(), *launch.program.constants.values())
        if isinstance(a, Array)
    ]
    for number, a in enumerate(launch.program.allocations.values()):
        shape, address = launch.shared_layout[number] if a.space == "shared" else (a.shape, 0)
        address += a.first_byte or 0  # of one among several arrays in dynamic memory
        infos.append(_array_info(a, shape, c_strides(shape), address))
    return tuple(infos)


def _array_info(array, shape, strides, address):
    size = array.dtype.itemsize
    in_bytes = tuple(s * size for s in strides)
    return ArrayInfo(array.name, array.space, shape, str(array.dtype), size, in_bytes, address, array.line)


def _counters(launch, site_counters) -> Counters:
    return replace(
        _sm_counters(site_counters, launch.flops, launch.barriers),
        l2_hits=sum(c.l2_hits for c in site_counters),
        l2_sectors=launch.l2.sectors,
        dram_read_bytes=launch.l2.bytes_read,
        dram_write_bytes=launch.l2.bytes_written,
        l2_dirty_bytes=launch.l2.dirty_bytes,
    )


def _sm_counters(site_counters, flops, barriers) -> Counters:
    """Return the counters of events inside the SMs."""

    def total(space, kind, name):
        return sum(getattr(c, name) for c in site_counters if c.site.space == space and c.site.kind == kind)

    global_sites = [c for c in site_counters if c.site.space == "global"]
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
        bank_conflicts=sum(c.bank_conflicts for c in site_counters),
        l1_hits=sum(c.l1_hits for c in site_counters),
        flops=sum(flops.values()),
        flops_by_dtype=dict(flops),
        barriers=barriers,
    )


def _sample_counters(site_counters, flops, barriers) -> Counters:
    """Return the counters that a sample determines: the requests to L2, but not their results."""
    l2_sectors = sum(c.sectors - c.l1_hits for c in site_counters)
    unknown = dict.fromkeys(("l2_hits", "dram_read_bytes", "dram_write_bytes", "l2_dirty_bytes"))
    return replace(_sm_counters(site_counters, flops, barriers), l2_sectors=l2_sectors, **unknown)


def _estimate(launch) -> tuple[np.ndarray, Counters]:
    """Return the whole grid's counts, a row per site, and its counters, estimated from the blocks of a sample."""
    blocks, estimate = launch.sampled_counts, launch.plan.estimate
    dtypes = sorted({dtype for b in blocks for dtype in b.flops})
    totals, _ = estimate({b.block: b.sites for b in blocks})
    totals = np.rint(totals).astype(np.int64)
    others, _ = estimate({b.block: np.array([b.barriers, *(b.flops.get(d, 0) for d in dtypes)]) for b in blocks})
    barriers, *flops = np.rint(others).astype(np.int64).tolist()
    grid_counters = _sample_counters(_site_counters(launch, totals), dict(zip(dtypes, flops)), barriers)

    names = [name for name, value in asdict(grid_counters).items() if isinstance(value, int)]
    values = {}
    for b in blocks:
        counters = _sample_counters(_site_counters(launch, b.sites), b.flops, b.barriers)
        values[b.block] = np.array([getattr(counters, name) for name in names])
    sums, errors = estimate(values)
    relative = np.divide(errors, sums, out=np.zeros_like(errors), where=sums != 0)
    return totals, replace(
        grid_counters, sample=Sample(len(blocks), launch.blocks, dict(zip(names, relative.tolist())))
    )


def _samples(launch) -> Samples:
    numbers = {block: number for number, block in enumerate(launch.recorded)}
    warps = launch.warps_per_block
    at_barrier = np.arange(warps) * WARP_LANES, np.full(warps, -1)
    number, site, line, thread, element = [], [], [], [], []
    for block, accessed_at, threads, elements in launch.sampled:
        is_barrier = accessed_at < 0  # its line stands in place of the threads
        number.append(numbers[block])
        site.append(accessed_at)
        line.append(threads if is_barrier else launch.sites[accessed_at].line)
        thread.append(at_barrier[0] if is_barrier else threads)
        element.append(at_barrier[1] if is_barrier else elements)
    of_access = np.repeat(np.arange(len(thread)), [len(threads) for threads in thread])
    threads, elements = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (thread, element))
    warp = threads // WARP_LANES
    is_first = np.diff(of_access * warps + warp, prepend=-1) != 0  # of a warp, whose lanes lie side by side
    access = of_access[is_first]
    index = np.full((len(access), WARP_LANES), -1, np.int64)
    index[np.cumsum(is_first) - 1, threads % WARP_LANES] = elements
    columns = (np.array(column, np.int64)[access] for column in (number, site))
    complete = launch.sampled_lanes <= MAX_SAMPLED_LANES
    return Samples(
        tuple(launch.recorded.values()), *columns, warp[is_first], np.array(line, np.int64)[access], index, complete
    )
