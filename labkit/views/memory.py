"""One warp's addresses: as sectors of global memory, and as banks of shared memory."""

from typing import NamedTuple

import numpy as np
from matplotlib.patches import Rectangle

from labkit import layout
from labkit.simulator.counters import CONFLICTS, COUNTS, WAVEFRONTS, count_shared, lanes_at_once
from labkit.table import count_text
from labkit.trace import BANKS, SECTOR_BYTES, WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, layout_data, pack, pack_lanes, strip_marks, table, unpack
from labkit.views.wording import block_name, check_trace, elements_in, join, recorded_block

MOST_STEPS = 2000


def memory(trace: Trace, line: int | None = None, array: str | None = None, warp: int = 0, block=None) -> View:
    """Show the sectors that a warp's global accesses move, and how many of the bytes are used.

    Parameters
    ----------
    trace
        A run that recorded the block.
    line, array
        Which accesses: those of this source line, of this array; of any if left out.
    warp
        The warp within the block.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.
    """
    check_trace("memory", trace)
    block, site, lanes = _accesses(trace, "global", line, array, warp, block)
    sites = [_site_data(trace, i) for i in range(len(trace.sites))]
    says, rows, firsts = [], [], []
    for step, (site_number, index) in enumerate(zip(site.tolist(), lanes, strict=True)):
        site_data, info = sites[site_number], trace.array(trace.sites[site_number].site.array)
        used, moved, first = _bytes(site_data, index)
        says.append(_memory_sentence(trace.sites[site_number].site, site_data, index, _is_transposed(info)))
        firsts.append(strip_marks(elements_in(info, first, SECTOR_BYTES)))
        rows.append([step + 1, site_data["line"], site_data["text"], moved // SECTOR_BYTES, used, moved])
    columns = ["access", "line", "text", "sectors", "bytes used", "bytes moved"]
    data = {
        "say": says,
        "sites": sites,
        "site": pack(site),
        "index": pack_lanes(lanes),
        "firsts": firsts,
        "table": table(columns, rows, by_step=True),
    }
    title = f"Memory: warp {warp} of block {block_name(block)} of `{trace.kernel}`"
    return View("memory", title, data, draw_memory_still)


def banks(
    *traces: Trace, line: int | None = None, array: str | None = None, warp: int = 0, block=None, labels=()
) -> View:
    """Show the shared-memory banks in which a warp's accesses meet; several traces are drawn side by side.

    Parameters
    ----------
    traces
        Runs that recorded the block: of one kernel, or of two that differ in their shared arrays' shape.
    line, array
        Which accesses; if both are left out, the array access with the most bank conflicts.
    warp
        The warp within the block.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.
    labels
        What to call each trace; else the array and its shape.
    """
    if not traces:
        raise TypeError("banks takes a trace, what `labkit.simulate` returned, not nothing.")
    for trace in traces:
        check_trace("banks", trace)
    sides = []
    for i, trace in enumerate(traces):
        shown_array = array if line or array else _worst_array(traces, trace)
        _, site, lanes = _accesses(trace, "shared", line, shown_array, warp, block)
        sites = [_site_data(trace, s) for s in range(len(trace.sites))]
        served = [_served(sites[s], index) for s, index in zip(site.tolist(), lanes, strict=True)]
        first = trace.array(trace.sites[site[0]].site.array)
        shape = "".join(f"[{n}]" for n in first.shape)
        sides.append(
            {
                "label": labels[i] if i < len(labels) else f"{first.name}{shape}",
                "sites": sites,
                "site": pack(site),
                "index": pack_lanes(lanes),
                "passes": pack(np.array([access.wavefronts for access in served])),
                "least": [access.least for access in served],
                "at_once": [access.at_once for access in served],
                "count": len(served),
                "texts": [f"line {c.site.line}, `{c.site.text}`" for c in trace.sites],
            }
        )
    steps = max(side["count"] for side in sides)
    passes = [unpack(side["passes"]) for side in sides]
    worst = max(range(steps), key=lambda step: max(int(p[min(step, len(p) - 1)]) for p in passes))
    says = [_banks_sentence(sides, step, warp) for step in range(steps)]
    rows = [[step + 1, *(int(p[step]) if step < len(p) else "" for p in passes)] for step in range(steps)]
    columns = ["access", *(f"wavefronts, {side['label']}" for side in sides)]
    data = {
        "say": says,
        "start": worst,
        "sides": sides,
        "alone": len(sides) == 1,
        "table": table(columns, rows, by_step=True),
    }
    return View("banks", f"Banks: the shared memory accesses of warp {warp}", data, draw_banks_still)


def _accesses(trace, space, line, array, warp, block):
    """Block, and the site and lanes of each of the warp's accesses that match."""
    block, rows = recorded_block(trace, block)
    samples = trace.samples
    of_space = [(i, counted.site) for i, counted in enumerate(trace.sites) if counted.site.space == space]
    site_numbers = [i for i, site in of_space if line in (None, site.line) and array in (None, site.array)]
    rows = rows[(samples.warp[rows] == warp) & np.isin(samples.site[rows], site_numbers)][:MOST_STEPS]
    if not len(rows):
        places = sorted({f"{site.text} (line {site.line})" for _, site in of_space})
        available = f"there are {join(places)}" if places else "there is none"
        where = (f" at line {line}" if line else "") + (f" of {array!r}" if array else "")
        subject = f"Warp {warp} of block {block_name(block)}"
        raise ValueError(f"{subject} makes no {space} access{where}; in this kernel {available}.")
    return block, samples.site[rows], samples.index[rows]


def _site_data(trace, which):
    site = trace.sites[which].site
    info = trace.array(site.array)
    return {
        "text": site.text,
        "line": site.line,
        "array": site.array,
        "load": site.kind == "load",
        "sectors": trace.sites[which].sectors,
        **layout_data(info, site.offset_bytes),
        "bytes": site.bytes,
        "elements": site.elements,
    }


def _addresses(site, index):
    """Return the address that each lane accesses; -1 if it is idle."""
    return np.where(index >= 0, site["base"] + layout.element_offsets(index, site["shape"], site["strides"]), -1)


def _bytes(site, index):
    """Return the bytes that the lanes request (each once), the bytes that move, and the first sector."""
    touched = np.unique(_addresses(site, index)[index >= 0])
    sectors = np.unique(touched // SECTOR_BYTES)
    return len(touched) * site["bytes"], len(sectors) * SECTOR_BYTES, int(sectors[0])


def _is_transposed(info):
    """Say if neighbours in memory are drawn one below the other."""
    strides = [abs(stride) for size, stride in zip(info.shape, info.strides_bytes, strict=True) if size > 1]
    return len(strides) == 2 and strides[0] < strides[1]


def _memory_sentence(site, site_data, index, is_transposed):
    lanes = int((index >= 0).sum())
    used, moved, _ = _bytes(site_data, index)
    note = f" (Neighbours in memory are one below the other in `{site.array}`.)" if is_transposed else ""
    verb = {"load": "load from", "store": "store to", "atomic": "update"}[site.kind]
    distinct = used // site_data["bytes"]
    note_distinct = "" if distinct == lanes else f" ({count_text(distinct, 'different element')})"
    subject = count_text(lanes, "lane") + note_distinct
    sectors = moved // SECTOR_BYTES
    result = f"**{_number(100 * used / moved)}% of the bytes moved are used.**"
    if distinct < lanes and lanes * site_data["bytes"] >= moved:  # no more sectors than separate elements would take
        result = f"A broadcast: {'it' if sectors == 1 else 'a sector'} serves {_number(lanes / sectors)} lanes."
    return (
        f"Line {site.line}, `{site.text}`: {subject} {verb} {count_text(sectors, 'sector')} "
        f"and use {used} of {moved} bytes. {result}{note}"
    )


def _number(value):
    return f"{value:.1f}".removesuffix(".0")


def _worst_array(traces, trace):
    """Return the shared array with the most bank conflicts in any trace if this trace has it, else its own worst."""
    conflicts_here, conflicts = {}, {}
    for counted in (counted for t in traces for counted in t.sites if counted.site.space == "shared"):
        name = counted.site.array
        conflicts[name] = max(conflicts.get(name, 0), counted.bank_conflicts)
        if counted in trace.sites:
            conflicts_here[name] = max(conflicts_here.get(name, 0), counted.bank_conflicts)
    best = max(conflicts, key=conflicts.__getitem__, default=None)
    return best if best in conflicts_here else max(conflicts_here, key=conflicts_here.__getitem__, default=None)


class _Served(NamedTuple):
    """How one warp's access is served: its wavefronts, the least number of them, and the lanes of one at most."""

    wavefronts: int
    least: int
    at_once: int


def _served(site, index) -> _Served:
    """Count the wavefronts of one warp's access as the simulator does."""
    lanes, width = index >= 0, site["elements"]
    itemsize = site["bytes"] // width
    elements = np.where(lanes, _addresses(site, index) // itemsize, 0)
    totals = np.zeros((1, COUNTS), np.int64)
    warp = np.array([[0, len(index), 0, 0, 0, 0]], np.int64)  # its first lane, and past its last
    count_shared(elements, 0, itemsize, width, 0, lanes, False, site["load"], warp, totals)
    at_once = lanes_at_once(elements, lanes, 0, len(index), site["bytes"], site["load"])
    wavefronts, conflicts = totals[0, [WAVEFRONTS, CONFLICTS]].tolist()
    return _Served(wavefronts, wavefronts - conflicts, min(int(at_once), len(index)))


def _words_of_banks(site, index, at_once) -> list[np.ndarray]:
    """Return how many different words of each bank the lanes access that are served together, per group of lanes."""
    addresses, counts = _addresses(site, index), []
    for first in range(0, len(index), at_once):
        found = addresses[first : first + at_once]
        words = np.unique(found[found >= 0, None] // 4 + np.arange(max(1, site["bytes"] // 4)))
        if len(words):
            counts.append(np.bincount(words % BANKS, minlength=BANKS))
    return counts


def _banks_sentence(sides, step, warp):
    def side_at(side):
        at = min(step, side["count"] - 1)
        passes = int(unpack(side["passes"])[at])
        waves = f"**{passes} wavefronts**" if passes > 1 else "1 wavefront"
        return side["texts"][int(unpack(side["site"])[at])], waves

    texts_and_waves = [side_at(side) for side in sides]
    notes = dict.fromkeys(_group_note(side, min(step, side["count"] - 1)) for side in sides)
    return " ".join(filter(None, [_compare_waves(sides, texts_and_waves, warp), *notes]))


def _group_note(side, access) -> str:
    """Say how many lanes a wavefront serves, where that is less than a warp."""
    site = side["sites"][int(unpack(side["site"])[access])]
    at_once, least = side["at_once"][access], side["least"][access]
    if at_once >= WARP_LANES:
        return ""
    verb = "load" if site["load"] else "store"
    return (
        f"A wavefront serves at most {at_once} lanes that {verb} {site['bytes']} bytes each, so {least} is the least."
    )


def _compare_waves(sides, texts_and_waves, warp):
    if len(sides) == 1:
        return f"Warp {warp}, {texts_and_waves[0][0]}: {texts_and_waves[0][1]}."
    if len({text for text, _ in texts_and_waves}) == 1:
        waves = join([f"{waves} with {side['label']}" for side, (_, waves) in zip(sides, texts_and_waves, strict=True)])
        return f"Warp {warp}, {texts_and_waves[0][0]}: {waves}."
    parts = [f"{side['label']}, {text}: {waves}" for side, (text, waves) in zip(sides, texts_and_waves, strict=True)]
    return f"Warp {warp}, {'; '.join(parts)}."


def draw_memory_still(figure, data, step):
    """Draw lanes above and sectors below, each used byte marked."""
    site = data["sites"][int(unpack(data["site"])[step])]
    index = unpack(data["index"])[step].astype(int)
    address = _addresses(site, index)
    sectors = np.unique(address[index >= 0] // SECTOR_BYTES)
    figure.set_size_inches(9.5, 2.1)
    axes = figure.add_subplot()
    axes.set_axis_off()
    width = 32 / max(32, len(sectors))  # a lane's, unless there are more sectors than lanes
    for lane in range(32):
        is_active = index[lane] >= 0
        axes.add_patch(Rectangle((lane, 3), 0.8, 0.6, facecolor=COLOURS["A"] if is_active else COLOURS["cell"]))
        colour = "white" if is_active else COLOURS["dim"]
        stills.write(axes, lane + 0.4, 3.3, lane, fontsize=7, color=colour)
    for position in range(len(sectors)):
        axes.add_patch(Rectangle((position * width, 0), width * 0.9, 0.7, facecolor=COLOURS["line"]))
    for lane in np.flatnonzero(index >= 0):
        position = int(np.searchsorted(sectors, address[lane] // SECTOR_BYTES))
        byte = width * 0.9 / SECTOR_BYTES
        left, size = position * width + address[lane] % SECTOR_BYTES * byte, site["bytes"] * byte
        axes.add_patch(Rectangle((left, 0), size, 0.7, facecolor=COLOURS["hot"]))
        axes.plot([lane + 0.4, left + size / 2], [3, 0.7], color=COLOURS["hot"], lw=0.6, alpha=0.6)
    which = "the first sector" if len(sectors) > 1 else "the sector"
    axes.text(0, -0.5, f"{which} holds {data['firsts'][step]}", fontsize=8, va="center", color=COLOURS["dim"])
    axes.set(xlim=(-0.2, 32.2), ylim=(-0.7, 3.8))
    axes.set_title(heading(data, step), fontsize=9, loc="left", color=COLOURS["fg"])


def draw_banks_still(figure, data, step):
    """Draw each trace's banks, a row per wavefront; the words that meet in one bank are stacked."""
    figure.set_size_inches(9.5, 2.4)
    for axes, side in zip(np.ravel(figure.subplots(1, len(data["sides"]))), data["sides"], strict=True):
        access = min(step, side["count"] - 1)
        site = side["sites"][int(unpack(side["site"])[access])]
        index = unpack(side["index"])[access].astype(int)
        first_wavefront = 0
        for counts in _words_of_banks(site, index, side["at_once"][access]):
            colours = [COLOURS["hot"] if count > 1 else COLOURS["C"] for count in counts]
            axes.bar(range(BANKS), counts, bottom=first_wavefront, color=colours)
            first_wavefront += counts.max()
            axes.axhline(first_wavefront, color=COLOURS["dim"], linewidth=0.5)
        passes = int(unpack(side["passes"])[access])
        axes.set_title(f"{side['label']}: {passes} wavefront{'s'[: passes != 1]}", fontsize=10, loc="left")
        axes.set(ylim=(0, 32), xlabel="bank", ylabel="wavefronts", xticks=[0, 8, 16, 24, 31])
        axes.spines[["top", "right"]].set_visible(False)
