"""What one block touches, statement by statement: global arrays, and the shared tiles as they fill up."""

from itertools import pairwise

import numpy as np

from labkit.trace import SECTOR_BYTES, Trace
from labkit.views.base import View, pack, table
from labkit.views.tiling_still import still
from labkit.views.wording import block_name, join, recorded_block

MOST_STEPS = 4000
_ROW_LENGTH = 32  # a one-dimensional array is drawn in rows of this many elements


def tiling(trace: Trace, A: str = "A", B: str = "B", C: str = "C", block=None, warp: int = 0) -> View:
    """Step through what a recorded block reads and writes.

    If the arrays form a product (M x K, K x N, M x N), A stands left, B above, and C where they meet;
    other kernels' arrays stand side by side. Shared arrays show which elements are filled, and how many
    reads each has served.

    Parameters
    ----------
    trace
        A run that recorded the block (`simulate(..., record=((1, 1, 0),))`).
    A, B, C
        Names of the product's arrays in the kernel; if there are none such, arrays that fit are taken.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.
    warp
        The warp that is picked out.
    """
    data = tiling_data(trace, (A, B, C), block, warp)
    return View("tiling", data.pop("title"), data, still)


def tiling_data(trace: Trace, names, block, warp) -> dict:
    """Everything the tiling view draws, as JSON-ready data."""
    block, rows = recorded_block(trace, block)
    samples = trace.samples
    site, warps, lanes = samples.site[rows], samples.warp[rows], samples.index[rows]
    offsets = _steps(site, warps, samples.line[rows])
    shown = offsets[: MOST_STEPS + 1]
    sites = [counted.site for counted in trace.sites]
    panels = _panels(trace, sites, site, names)
    feeds = _feeds(sites)
    served = {
        i.name: np.zeros(int(np.prod(i.shape, dtype=int)), bool) for i in trace.arrays if i.space == "shared"
    }
    steps = [
        _Step(trace, sites, feeds, served, block, warp, site[a:b], warps[a:b], lanes[a:b])
        for a, b in pairwise(shown)
    ]
    rounds = _rounds([step.phase for step in steps])
    says = [_where(rounds, i) + step.sentence for i, step in enumerate(steps)]
    if len(offsets) > len(shown):
        says[-1] += f" The view ends here; the block goes on for {len(offsets) - len(shown)} more steps."
    totals = np.cumsum([step.counts for step in steps], axis=0).tolist() if steps else []
    stats = _stats(feeds, totals, steps)
    last = shown[-1]
    names_of = [panel["name"] for panel in panels]
    return {
        "title": _title(trace, panels, block),
        "say": says or [f"Block {block_name(block)} touched no array in memory."],
        "start": 0,
        "panels": panels,
        "product": [p["role"] for p in panels[:3]] == ["A", "B", "C"],
        "sites": [
            {
                "panel": names_of.index(s.array) if s.array in names_of else -1,
                "kind": s.kind,
                "source": feeds.get(i, -1),
            }
            for i, s in enumerate(sites)
        ],
        "offsets": pack(np.array(shown)),
        "site": pack(site[:last]),
        "warp": pack(warps[:last]),
        "index": pack(lanes[:last]),
        "picked": warp,
        "phases": [step.phase for step in steps],
        "rounds": rounds,
        "stats": stats,
        "table": {
            **table(
                ["step", "line", "phase", "what happens", *stats["labels"]],
                [
                    [
                        i + 1,
                        step.line or "",
                        step.phase,
                        says[i].replace("`", ""),
                        *(f"{v:,}" for v in stats["values"][i]),
                    ]
                    for i, step in enumerate(steps)
                ],
            ),
            "byStep": True,
        },
    }


def _steps(site, warp, line):
    """Where steps begin: one statement, run by all warps that run it together, is one step."""
    offsets, seen, current = [0], set(), None
    for row, key in enumerate(zip(site.tolist(), warp.tolist(), strict=True)):
        here = (line[row], key[0] < 0)
        if row and (here != current or key in seen):
            offsets.append(row)
            seen = set()
        current = here
        seen.add(key)
    if len(site):
        offsets.append(len(site))
    return offsets


def _feeds(sites):
    """Shared stores that copy: store site -> the one global load in the same statement."""
    feeds = {}
    for i, store in enumerate(sites):
        if (store.space, store.kind) == ("shared", "store"):
            wanted = (store.line, "global", "load")
            loads = [j for j, s in enumerate(sites) if (s.line, s.space, s.kind) == wanted]
            if len(loads) == 1:
                feeds[i] = loads[0]
    return feeds


def _panels(trace, sites, touched, names):
    """The arrays to draw: global ones (a product's A, B and C first), then shared ones."""
    used = {sites[i].array for i in np.unique(touched).tolist() if i >= 0}
    infos = {info.name: info for info in trace.arrays if info.name in used}
    written = {s.array for s in sites if s.kind != "load"}
    flat = [name for name, info in infos.items() if info.space == "global"]
    product = _product(trace, {s.array for s in sites if s.space == "global"}, written, names)
    order = product or sorted(flat, key=lambda name: name in written)
    roles = dict(zip(product, "ABC", strict=False)) if product else {}
    inputs = iter("ABABABAB")
    panels = []
    for name in [*order, *(n for n in flat if n not in order)]:
        role = roles.get(name) or ("C" if name in written else next(inputs, "A"))
        panels.append(_panel(trace.array(name), role))
    by_name = {panel["name"]: panel["role"] for panel in panels}
    sources = {sites[store].array: sites[load].array for store, load in _feeds(sites).items()}
    for name, info in infos.items():
        if info.space == "shared":
            panels.append(_panel(info, by_name.get(sources.get(name), "C")))
    return panels


def _panel(info, role):
    if len(info.shape) >= 2:
        rows, columns = int(np.prod(info.shape[:-1])), info.shape[-1]
    else:
        size = info.shape[0] if info.shape else 1
        columns = min(size, _ROW_LENGTH)
        rows = -(-size // columns)
    return {
        "name": info.name, "role": role, "space": info.space, "shape": list(info.shape),
        "rows": int(rows), "columns": int(columns), "size": int(np.prod(info.shape, dtype=int)),
    }  # fmt: skip


def _product(trace, used, written, names):
    """Names of arrays that fit M x K times K x N into M x N: the given ones, else the only ones that do."""
    flat = [info for info in trace.arrays if info.space == "global" and info.name in used]
    shapes = {info.name: info.shape for info in flat if len(info.shape) == 2}

    def fits(a, b, c):
        if len({a, b, c}) < 3 or not {a, b, c} <= shapes.keys() or c not in written or {a, b} & written:
            return False
        (m, k), (k2, n), out = shapes[a], shapes[b], shapes[c]
        return k == k2 and out == (m, n)

    if fits(*names):
        return list(names)
    found = [[a, b, c] for a in shapes for b in shapes for c in shapes if fits(a, b, c)]
    return found[0] if found else None


class _Step:
    """One statement of the block: its phase, sentence and counts.

    `served` marks the shared elements that hold a value loaded from global memory; it is brought up to date.
    """

    def __init__(self, trace, sites, feeds, served, block, warp, site, warps, lanes):
        self.line = None
        # Global loads; shared reads (of loaded values only, where it is known which those are); copies.
        self.counts = (0, 0, 0)
        self.loaded = set()  # (array, element) of global loads
        if site[0] < 0:
            self.phase = "barrier"
            self.sentence = "a barrier. No thread of the block goes on until all have come here."
            return
        present = list(dict.fromkeys(site.tolist()))
        self.line = sites[present[0]].line
        acts = {(sites[i].space, sites[i].kind) for i in present}
        active = {i: int((lanes[site == i] >= 0).sum()) for i in present}

        def count(space, kind):
            return sum(active[i] for i in present if (sites[i].space, sites[i].kind) == (space, kind))

        copied = 0
        for i in present:
            if sites[i].space == "shared" and sites[i].kind == "store":
                fed_by = site == feeds.get(i, -1)
                loads = dict(zip(warps[fed_by], lanes[fed_by] >= 0, strict=True))
                for of_warp, target in zip(warps[site == i], lanes[site == i], strict=True):
                    active_lanes = target >= 0
                    loaded = loads.get(of_warp, np.zeros(32, bool)) & active_lanes
                    served[sites[i].array][target[active_lanes]] = loaded[active_lanes]
                    copied += int(loaded.sum())
        reads = sum(
            int(served[sites[i].array][lanes[site == i]][lanes[site == i] >= 0].sum()) if feeds else active[i]
            for i in present
            if (sites[i].space, sites[i].kind) == ("shared", "load")
        )
        self.counts = (count("global", "load"), reads, copied)
        self.phase = _phase(sites, present, acts)
        for i in present:
            if (sites[i].space, sites[i].kind) == ("global", "load"):
                self.loaded |= {(sites[i].array, e) for e in np.unique(lanes[site == i]).tolist() if e >= 0}
        here = f"line {self.line}: "

        def regions(kinds, space, of_warp):
            parts = []
            for i in present:
                if sites[i].kind in kinds and sites[i].space == space:
                    chosen = lanes[(site == i) & (warps == warp)] if of_warp else lanes[site == i]
                    if (chosen >= 0).any():
                        parts.append((i, _region(trace.array(sites[i].array), chosen[chosen >= 0])))
            return parts

        stores = ("store", "atomic")
        if any(feeds.get(i) in active for i in present):
            source, target = regions(("load",), "global", False), regions(stores, "shared", False)
            sectors = _sectors(trace, sites, site, lanes)
            what = join([r for _, r in source]) or "zeros"
            self.sentence = (
                f"{here}block {block_name(block)} copies {what} into {join([r for _, r in target])}, "
                f"{self.counts[0]:,} loads from global memory, {sectors} a warp."
            )
            return
        if not (warps == warp).any():
            others = sorted(set(warps.tolist()))
            who = f"warp {others[0]}" if len(others) == 1 else f"{len(others)} warps"
            self.sentence = f"{here}{who} of the block at work here; warp {warp} takes no part."
            return
        parts = []
        for verb, kinds, space in (
            ("loads", ("load",), "global"),
            ("reads", ("load",), "shared"),
            ("fills", stores, "shared"),
            ("writes", stores, "global"),
        ):
            found = regions(kinds, space, True)
            if found:
                parts.append(f"{verb} {join([r for _, r in found])}")
        self.sentence = f"{here}warp {warp} {join(parts)}."
        if acts == {("shared", "load")}:
            self.sentence += " Nothing comes from global memory."
        elif ("global", "load") in acts:
            sectors = _sectors(trace, sites, site, lanes)
            self.sentence += f" The block makes {self.counts[0]:,} global loads, {sectors} a warp."


def _phase(sites, present, acts):
    stored = [sites[i].array for i in present if sites[i].space == "global" and sites[i].kind != "load"]
    if ("global", "load") in acts and ("shared", "store") in acts:
        return "load tiles"
    if stored:
        return f"write {stored[0]}"
    if ("global", "load") in acts:
        return "load from global memory"
    if ("shared", "load") in acts and acts <= {("shared", "load")}:
        return "read shared memory"
    return "work in shared memory"


def _rounds(phases):
    """Phases as they repeat: runs of equal steps, the round that repeats, and which steps each run holds."""
    runs = []
    for i, phase in enumerate(phases):
        if runs and runs[-1]["phase"] == phase:
            runs[-1]["steps"] += 1
        else:
            runs.append({"phase": phase, "first": i, "steps": 1})
    names = [run["phase"] for run in runs]
    best = (0, 0, 0)
    for period in range(2, min(len(runs) // 2, 12) + 1):
        repeats = 1
        while names[repeats * period : (repeats + 1) * period] == names[:period]:
            repeats += 1
        if repeats > 1:
            best = max(best, (repeats * period, -period, repeats))
    return {"runs": runs, "period": -best[1], "repeats": best[2]}


def _where(rounds, step):
    """Which round a step is in, as the beginning of its sentence."""
    run = max(i for i, r in enumerate(rounds["runs"]) if r["first"] <= step)
    if run < rounds["period"] * rounds["repeats"]:
        return f"Round {run // rounds['period'] + 1} of {rounds['repeats']}, "
    return f"Step {step + 1}, "


def _stats(feeds, totals, steps):
    """The numbers to show large at each step."""
    if any(step.counts[2] for step in steps):
        labels = ["global loads so far", "without tiles", "reads per load"]
        # Loads that went to shared memory would not have been made; each shared read would have been a load.
        values = [[g, g - copied + s, round(s / copied, 1) if copied else 0] for g, s, copied in totals]
        return {"labels": labels, "values": values, "times": [2]}
    if any(step.counts[1] for step in steps):
        labels = ["global loads so far", "shared reads so far"]
        return {"labels": labels, "values": [[g, s] for g, s, _ in totals], "times": []}
    seen, values = set(), []
    for step, (loads, _, _) in zip(steps, totals, strict=True):
        seen |= step.loaded
        values.append([loads, len(seen), round(loads / len(seen), 1) if seen else 0])
    labels = ["global loads so far", "different elements", "loads of each"]
    return {"labels": labels, "values": values, "times": [2]}


def _region(info, index) -> str:
    """Elements as a slice of the array, if they form one: `A[0:16, 3]`."""
    touched = np.unique(index)
    shape = info.shape or (1,)
    coordinates = np.unravel_index(touched, shape)
    bounds = [(int(c.min()), int(c.max()), n) for c, n in zip(coordinates, shape, strict=True)]
    if np.prod([high - low + 1 for low, high, _ in bounds]) == len(touched):
        return f"`{info.name}[{', '.join(_slice(*bound) for bound in bounds)}]`"
    return f"{len(touched)} elements of `{info.name}`"


def _slice(low, high, length):
    if low == high:
        return str(low)
    return ":" if (low, high) == (0, length - 1) else f"{low}:{high + 1}"


def _sectors(trace, sites, site, lanes) -> str:
    """Sectors that a warp's loads touch here, on average."""
    counts = []
    for row, i in enumerate(site.tolist()):
        if (sites[i].space, sites[i].kind) == ("global", "load") and (lanes[row] >= 0).any():
            info = trace.array(sites[i].array)
            address = info.base_address + lanes[row][lanes[row] >= 0] * info.itemsize
            counts.append(len(np.unique(address // SECTOR_BYTES)))
    mean = sum(counts) / max(1, len(counts))
    return f"{mean:.0f} sector{'' if mean == 1 else 's'}" if mean == int(mean) else f"{mean:.1f} sectors"


def _title(trace, panels, block):
    tiles = [p for p in panels if p["space"] == "shared"]
    title = f"Tiling: block {block_name(block)} of `{trace.kernel}`"
    if [p["role"] for p in panels[:3]] == ["A", "B", "C"] and len(panels[2]["shape"]) == 2:
        title += " for a {} × {} product".format(*panels[2]["shape"])
    if tiles:
        return f"{title}, shared tiles of {' × '.join(map(str, tiles[0]['shape']))}"
    return f"{title}, no shared memory"
