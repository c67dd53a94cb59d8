"""What a launch that has run should be told: results lost, globals changed, accesses that cost time."""

import math

from labkit.simulator.arrays import Array
from labkit.simulator.caches import resident_blocks
from labkit.simulator.reading.source import captured_values
from labkit.simulator.reading.trusted import in_words, is_same
from labkit.trace import Finding, SiteCounters

# Beyond so many full waves a last one that is nearly empty costs less than a tenth of the time.
MAX_FULL_WAVES = 9


def unwritten_outputs(launch) -> list[Finding]:
    """Arrays that the kernel stores to, but to which no thread ever stored; or no store at all."""
    stored = {s.array for s in launch.sites if s.space == "global" and s.kind != "load"}
    found = [*_rebound_arguments(launch, stored)]
    arrays = [*launch.arrays]
    if not found and arrays and not stored and not launch.program.prints:
        line = launch.source.tree.lineno
        message = (
            f"Line {line}: the kernel never stores into any of its arrays ({', '.join(arrays)}), so its work is lost; "
            f"write the result into one of them, for instance `{arrays[-1]}[i] = ...`."
        )
        return [Finding("unwritten", "error", message, line)]
    for name in {s.array for s in launch.sites if s.space == "global" and s.kind != "load"}:
        sites = [(i, s) for i, s in enumerate(launch.sites) if s.array == name and s.kind != "load"]
        if sum(int(launch.totals[i, 0]) for i, _ in sites) == 0:
            line = sites[0][1].line
            found.append(
                Finding(
                    "unwritten",
                    "error",
                    f"Line {line}: no thread ever stores to {name}, which stays as it was; the condition around this "
                    "line is never true, or the grid is empty where it matters.",
                    line,
                    sites[0][1].column,
                    name,
                )
            )
    return found


def _rebound_arguments(launch, stored):
    """Arguments that only got a new meaning inside the kernel, where a store was meant."""
    names = launch.function.__code__.co_varnames
    for name, line in launch.program.rebound.items():
        if isinstance(launch.arguments[names.index(name)], Array) and name not in stored:
            why = (
                f"gives the name {name} a new meaning in the thread and leaves the array as it was; write into an "
                f"element, `{name}[i] = ...`."
            )
        elif not stored:
            why = (
                "changes the thread's own copy of a number, and nothing comes back; pass an array and use "
                f"`cuda.atomic.add({name}, 0, ...)`."
            )
        else:
            continue
        yield Finding("unwritten", "error", f"Line {line}: assigning to {name} {why}", line, array=name)


def slow_accesses(launch, counted: list[SiteCounters]) -> list[Finding]:
    """What the counters say about speed: scattered global accesses and bank conflicts."""
    found = []
    for c in counted:
        site = c.site
        if site.space == "global" and c.requests and site.kind != "atomic":
            used = c.bytes / (32 * c.sectors) if c.sectors else 1.0
            ideal = max(1.0, c.bytes / c.requests / 32)
            if c.sectors / c.requests >= 2 * ideal and c.accesses / c.requests >= 8 and used < 0.5:
                found.append(_uncoalesced(c, math.ceil(ideal)))
        if site.space == "shared" and c.bank_conflicts and site.kind != "atomic":
            found.append(_bank_conflict(c))
    return found


def _uncoalesced(c, ideal):
    site, each = c.site, c.sectors / c.requests
    cure = "Let neighbouring threads (threadIdx.x) take elements that are neighbours in memory."
    message = (
        f"Line {site.line}: one warp's `{site.text}` touches {each:.1f} sectors of 32 bytes on average, where {ideal} "
        f"would do. The memory moves {each / ideal:.3g} times as many as it has to, and where it sets the time, the "
        f"line takes up to {each / ideal:.3g} times as long. {cure}"
    )
    place = (site.line, site.column, site.array)
    return Finding("uncoalesced", "advice", message, *place, count=c.requests, remedy=cure)


def _bank_conflict(c):
    site, fewest = c.site, c.wavefronts - c.bank_conflicts
    padding = "one element" if site.elements == 1 else f"{site.elements} elements"
    cure = f"Pad the rows by {padding}, or change which thread takes what."
    if site.bytes == 16:
        cure = (
            f"Pad the rows by {padding}; or, where nothing may lie between them, swizzle them, so that the same piece "
            "of neighbouring rows lies in different places."
        )
    message = (
        f"Line {site.line}: `{site.text}` takes {c.wavefronts / c.requests:.1f} passes through the banks of shared "
        f"memory, where {fewest / c.requests:.3g} would do. Each pass is a cycle, so shared memory is busy here "
        f"{c.wavefronts / fewest:.3g} times as long as it has to be: {c.bank_conflicts:,} cycles more in the whole "
        f"launch. {cure}"
    )
    place = (site.line, site.column, site.array)
    return Finding("bank-conflict", "advice", message, *place, count=c.bank_conflicts, remedy=cure)


def idle_lanes(launch):
    """Blocks that are no multiple of a warp."""
    if launch.threads % 32:
        yield Finding(
            "idle-lanes",
            "advice",
            f"Line {launch.source.first_line}: a block of {launch.threads} threads leaves "
            f"{32 - launch.threads % 32} lanes of its last warp idle; a multiple of 32 uses them all.",
            launch.source.first_line,
        )


def sample_advice(launch, counters) -> Finding:
    """That only some blocks ran, and how far the totals may be off."""
    sample = counters.sample
    worst = max(sample.relative_errors, key=sample.relative_errors.get)
    line = launch.source.first_line
    return Finding(
        "sample",
        "advice",
        f"Line {line}: {sample.blocks_run:,} of {sample.blocks_in_grid:,} blocks ran, and findings are theirs alone. "
        f"Counters are estimates for the whole grid, with a standard error of {sample.relative_errors[worst]:.1%} at "
        f"most ({worst.replace('_', ' ')}); leave `sample` out to run every block.",
        line,
    )


def partial_wave(launch):
    """A last wave of blocks that leaves most multiprocessors idle, in a launch of few waves."""
    blocks_per_sm = resident_blocks(launch.gpu, launch.threads, launch.shared_bytes)
    wave = launch.gpu.sms * blocks_per_sm
    full, last = divmod(launch.blocks, wave)
    if 1 <= full <= MAX_FULL_WAVES and 0 < last < launch.gpu.sms / 2:
        yield Finding(
            "tail",
            "advice",
            f"Line {launch.source.first_line}: {launch.blocks} blocks are {full} full wave{'s' * (full > 1)} of {wave} "
            f"({launch.gpu.sms} multiprocessors with {blocks_per_sm} each) and a last one of {last}, during which at least "
            f"{launch.gpu.sms - last} multiprocessors stand idle; the launch takes about as long as one of "
            f"{(full + 1) * wave} blocks. Launch {wave} blocks that loop over the rest, or make the blocks smaller.",
            launch.source.first_line,
            count=last,
        )


def changed_globals(launch):
    """Globals that have another value than the one the kernel was compiled with."""
    for (function, name), value in launch.program.frozen.items():
        now = captured_values(function).get(name, value)
        if not is_same(now, value):
            line = launch.source.first_line
            yield Finding(
                "changed-global",
                "advice",
                f"`{name}` is {in_words(now)} now, but the kernel was compiled when it was {in_words(value)}, and "
                f"numba keeps that: run the kernel's cell again, or use "
                f"`labkit.specialise(kernel, {name}={in_words(now)})`.",
                line,
            )
