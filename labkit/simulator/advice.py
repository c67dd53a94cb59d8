"""Advice after a launch: lost results, changed globals, accesses and launch shapes that cost time."""

import math
import re

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.caches import resident_blocks
from labkit.simulator.counters import ACCESSES
from labkit.simulator.reading.source import captured_values
from labkit.simulator.reading.trusted import in_words, is_same
from labkit.trace import WARP_LANES, Finding, SiteCounters

# After this many full waves, a nearly empty last wave costs less than a tenth of the time.
MAX_FULL_WAVES = 9


def lost_results(launch) -> list[Finding]:
    """Find results that cannot reach the caller: arguments that are only renamed, a kernel that loads and never stores.

    Where a store is there and no thread came to it, the launch may have had nothing to store: that is advice.
    """
    stored = {s.array for s in launch.sites if s.space == "global" and s.kind != "load"}
    findings = [*_rebound_arguments(launch, stored)]
    arrays = [*launch.arrays]
    if not findings and launch.sites and arrays and not stored and not launch.program.prints:
        line = launch.source.tree.lineno
        cure = f"write the result into one of them, for instance `{arrays[-1]}[i] = ...`."
        message = (
            f"Line {line}: the kernel never stores into any of its arrays ({', '.join(arrays)}), so its work is lost; "
            f"{cure}"
        )
        return [Finding("unwritten", "error", message, line, remedy=cure)]
    return findings


def unreached_stores(launch) -> list[Finding]:
    """Find the arrays that the kernel stores to, and to which no thread of this launch did."""
    findings = []
    for name in {s.array for s in launch.sites if s.space == "global" and s.kind != "load"}:
        sites = [(i, s) for i, s in enumerate(launch.sites) if s.array == name and s.kind != "load"]
        if sum(int(launch.totals[i, ACCESSES]) for i, _ in sites) == 0:
            site, cure = sites[0][1], "if it should change, check the condition around this line, and the grid."
            message = f"Line {site.line}: no thread stored to {name}, which is unchanged; {cure}"
            findings.append(_site_advice("unwritten", site, message, remedy=cure))
    return findings


def _rebound_arguments(launch, stored):
    """Find arguments that the kernel only assigns to, where a store into an element was meant."""
    names = launch.function.__code__.co_varnames
    for name, line in launch.program.rebound.items():
        if isinstance(launch.arguments[names.index(name)], Array) and name not in stored:
            why = f"gives the name {name} a new meaning in the thread and leaves the array as it was"
            cure = f"write into an element, `{name}[i] = ...`."
        elif not stored:
            why = "changes the thread's own copy of a number, which is lost at the end of the thread"
            cure = f"pass an array and use `cuda.atomic.add({name}, 0, ...)`."
        else:
            continue
        message = f"Line {line}: assigning to {name} {why}; {cure}"
        yield Finding("unwritten", "error", message, line, array=name, remedy=cure)


def slow_accesses(launch, site_counters: list[SiteCounters]) -> list[Finding]:
    """Find uncoalesced global accesses and bank conflicts in the counters of all sites."""
    findings = []
    for number, counters in enumerate(site_counters):
        site = counters.site
        if site.space == "global" and counters.requests and site.kind != "atomic":
            used = counters.bytes / (32 * counters.sectors) if counters.sectors else 1.0
            ideal = max(1.0, counters.bytes / counters.requests / 32)
            sectors, lanes = counters.sectors / counters.requests, counters.accesses / counters.requests
            if sectors >= 2 * ideal and lanes >= 8 and used < 0.5:
                findings.append(_uncoalesced(counters, sectors, math.ceil(ideal), _cure_of_distance(launch, number)))
        if site.space == "shared" and counters.bank_conflicts and site.kind != "atomic":
            findings.append(_bank_conflict(counters))
    return findings


def _cure_of_distance(launch, site_number):
    """Return the fix of a warp whose accesses are far apart: the block's x extent, or which thread takes what."""
    width, rows = launch.block[0], launch.threads_per_block // launch.block[0]
    if width >= WARP_LANES or rows == 1 or not _neighbours_are_adjacent(launch, site_number):
        return "Let neighbouring threads (threadIdx.x) take elements that are neighbours in memory."
    example = (
        f", such as ({WARP_LANES}, {max(1, launch.threads_per_block // WARP_LANES)})" if launch.block[2] == 1 else ""
    )
    wide = f"{width} thread{'s' * (width > 1)} wide"
    return (
        f"A block is {wide}, so that a warp spans {-(-WARP_LANES // width)} of its rows: make its x extent a multiple "
        f"of {WARP_LANES}{example}."
    )


def _neighbours_are_adjacent(launch, site_number):
    """Return whether neighbours along x of the recorded blocks took neighbouring elements, or the same at an edge."""
    width, steps = launch.block[0], {1} if launch.block[0] == 1 else set()
    for _, number, threads, elements in launch.sampled:
        if number == site_number:
            together = (np.diff(threads) == 1) & (threads[1:] % width != 0)
            steps |= {*np.diff(elements)[together].tolist()}
    return {1} <= steps <= {0, 1}


def _uncoalesced(counters, sectors, ideal, cure):
    """`sectors` is the average per request, and `ideal` as many as would do."""
    site, factor = counters.site, sectors / ideal
    message = (
        f"Line {site.line}: one warp's `{site.text}` touches {sectors:.1f} sectors of 32 bytes on average, where "
        f"{ideal} would do. The memory moves {factor:.3g} times as many as it has to, and where it sets the time, the "
        f"line takes up to {factor:.3g} times as long. {cure}"
    )
    return _site_advice("uncoalesced", site, message, count=counters.requests, remedy=cure)


def _bank_conflict(counters):
    site, requests, conflicts = counters.site, counters.requests, counters.bank_conflicts
    wavefronts, ideal = counters.wavefronts, counters.wavefronts - conflicts
    padding = "one element" if site.elements == 1 else f"{site.elements} elements"
    cure = f"Pad the rows by {padding}, or change which thread takes which element."
    if site.bytes == 16:
        cure = (
            f"Pad the rows by {padding}; or, where rows must stay contiguous, swizzle them, so that the same piece "
            "of neighbouring rows is in different banks."
        )
    message = (
        f"Line {site.line}: `{site.text}` takes {wavefronts / requests:.1f} wavefronts of shared memory on "
        f"average, where {ideal / requests:.3g} would do. A wavefront takes a cycle, so shared memory is busy here "
        f"{wavefronts / ideal:.3g} times as long as it has to be: {conflicts:,} cycles more in the whole "
        f"launch. {cure}"
    )
    return _site_advice("bank-conflict", site, message, count=conflicts, remedy=cure)


def _site_advice(kind, site, message, **fields):
    return Finding(kind, "advice", message, site.line, site.column, site.array, **fields)


def _launch_advice(kind, launch, message, **fields):
    return Finding(kind, "advice", message, launch.source.first_line, **fields)


def idle_lanes(launch):
    """Find a block size that is not a multiple of the warp size."""
    if launch.threads_per_block % 32:
        cure = "a multiple of 32 uses them all."
        threads, idle = launch.threads_per_block, -launch.threads_per_block % 32
        message = (
            f"Line {launch.source.first_line}: a block of {threads} thread{'s' * (threads > 1)} leaves {idle} "
            f"lane{'s' * (idle > 1)} of its last warp idle; {cure}"
        )
        yield _launch_advice("idle-lanes", launch, message, remedy=cure)


def one_axis(launch):
    """Find a launch along one axis of a kernel that counts threads in two, with a matrix to cover."""
    is_flat = launch.grid[1:] == launch.block[1:] == (1, 1)
    matrix = next((a.shape for a in launch.arrays.values() if len(a.shape) == 2 and min(a.shape) > 1), None)
    if is_flat and matrix and re.search(r"\bgrid\(2\)", launch.source.text):
        blocks = tuple(-(-n // 16) for n in matrix)
        cure = f"Launch with pairs, `[{blocks}, (16, 16)]`."
        message = (
            f"Line {launch.source.first_line}: `grid(2)` counts threads along two axes, and this launch has only the "
            f"first: the second index is 0 in all {launch.grid[0] * launch.block[0]:,} threads. {cure}"
        )
        yield _launch_advice("one-axis", launch, message, remedy=cure)


def parted_lanes(launch):
    """Say where lanes of one warp wait for one another, with which older GPUs hang."""
    if launch.parting.warps:
        line = launch.parting.line
        cure = (
            "Let each lane do its work and release the others inside the loop: `while not done:`, and in it "
            "`if cuda.atomic.cas(...) == 0:` with the work, the release of the lock, and `done = True`."
        )
        message = (
            f"Line {line}: lanes of one warp wait here for one another. GPUs before Volta (compute capability 7.0) "
            "hang there; later ones run the lanes on their own. Counters treat each lane of such a warp as on its own "
            f"from the kernel's first line, so no two share a request. {cure}"
        )
        yield Finding("lane-wait", "advice", message, line, launch.program.wait_columns[line], remedy=cure)


def sample_advice(launch, counters) -> Finding:
    """Say that only a sample of the blocks ran, and how large the standard error of the totals is."""
    sample = counters.sample
    worst, cure = max(sample.relative_errors, key=sample.relative_errors.get), "leave `sample` out to run every block."
    message = (
        f"Line {launch.source.first_line}: {sample.blocks_run:,} of {sample.blocks_in_grid:,} blocks ran, and findings "
        f"cover only these. Counters are estimates for the whole grid, with a standard error of "
        f"{sample.relative_errors[worst]:.1%} at most ({worst.replace('_', ' ')}); {cure}"
    )
    return _launch_advice("sample", launch, message, remedy=cure)


def time_limit_advice(launch) -> Finding:
    """Say how many blocks were checked before the time limit, and that the results are whole."""
    message = (
        f"Line {launch.source.first_line}: the time limit of {launch.pace.time_limit_s:g} s ended the checks after "
        f"{launch.checked_blocks:,} of {launch.blocks:,} blocks. The others ran too, so the results are whole, but "
        "without a check for races and unwritten elements, and without counters. Launch a smaller problem, or raise "
        "the limit."
    )
    return _launch_advice("time-limit", launch, message)


def partial_wave(launch):
    """Find a last wave that leaves most multiprocessors idle, in a launch of few waves."""
    blocks_per_sm = resident_blocks(launch.gpu, launch.threads_per_block, launch.shared_bytes)
    wave = launch.gpu.sms * blocks_per_sm
    full, last = divmod(launch.blocks, wave)
    if 1 <= full <= MAX_FULL_WAVES and 0 < last < launch.gpu.sms / 2:
        cure = f"Launch {wave} blocks that loop over the rest, or make the blocks smaller."
        message = (
            f"Line {launch.source.first_line}: {launch.blocks} blocks are {full} full wave{'s' * (full > 1)} of {wave} "
            f"({launch.gpu.sms} multiprocessors with {blocks_per_sm} each) and a last one of {last}, during which at "
            f"least {launch.gpu.sms - last} multiprocessors idle; the launch takes about as long as one of "
            f"{(full + 1) * wave} blocks. {cure}"
        )
        yield _launch_advice("tail", launch, message, count=last, remedy=cure)


def changed_globals(launch):
    """Find globals whose value differs from the one that the kernel was compiled with."""
    frozen = launch.program.frozen
    captured = {function: captured_values(function) for function, _ in frozen}
    for (function, name), value in frozen.items():
        now = captured[function].get(name, value)
        if not is_same(now, value):
            cure = f"run the kernel's cell again, or use `labkit.specialise(kernel, {name}={in_words(now)})`."
            message = (
                f"`{name}` is {in_words(now)} now, but the kernel was compiled when it was {in_words(value)}, and "
                f"numba keeps that: {cure}"
            )
            yield _launch_advice("changed-global", launch, message, remedy=cure)
