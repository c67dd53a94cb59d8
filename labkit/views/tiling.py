"""The accesses of one block, statement by statement: global arrays, and the shared tiles as they fill up."""

from itertools import pairwise

import numpy as np

from labkit.trace import Trace
from labkit.views.base import View, pack, pack_lanes, table
from labkit.views.tiling_steps import Reader, copies, step_offsets
from labkit.views.tiling_still import draw_still
from labkit.views.wording import block_name, check_trace, recorded_block

MOST_STEPS = 4000
_ROW_LENGTH = 32  # a one-dimensional array is drawn in rows of this many elements


def tiling(trace: Trace, A: str = "A", B: str = "B", C: str = "C", block=None, warp: int = 0) -> View:
    """Step through what a recorded block reads and writes.

    If the arrays form a product (M x K, K x N, M x N), A is at the left, B above, and C where they meet; other kernels'
    arrays are side by side. Shared arrays show which elements are filled, and how many reads each has served.

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
    check_trace("tiling", trace)
    block, rows = recorded_block(trace, block)
    samples = trace.samples
    site, warps, lanes = samples.site[rows], samples.warp[rows], samples.index[rows]
    offsets = step_offsets(site, warps, samples.line[rows])
    shown = offsets[: MOST_STEPS + 1]
    sites = [counted.site for counted in trace.sites]
    panels, product = _panels(trace, sites, site, (A, B, C))
    reader = Reader(trace, block, warp)
    steps = [reader.step(site[a:b], warps[a:b], lanes[a:b]) for a, b in pairwise(shown)]
    rounds = _rounds([step.phase for step in steps])
    says = [_where(rounds, i) + step.sentence for i, step in enumerate(steps)]
    if len(offsets) > len(shown):
        says[-1] += f" The view ends here; the block goes on for {len(offsets) - len(shown)} more steps."
    stats = _stats(steps)
    last = shown[-1]
    panel_of = {panel["name"]: number for number, panel in enumerate(panels)}
    data = {
        "say": says or [f"Block {block_name(block)} touched no array in memory."],
        "start": 0,
        "panels": panels,
        "product": product,
        "sites": [
            {"panel": panel_of.get(site.array, -1), "kind": site.kind, "source": reader.copies.get(number, -1)}
            for number, site in enumerate(sites)
        ],
        "offsets": pack(np.array(shown)),
        "site": pack(site[:last]),
        "warp": pack(warps[:last]),
        "index": pack_lanes(lanes[:last]),
        "picked": warp,
        "phases": [step.phase for step in steps],
        "rounds": rounds,
        "stats": stats,
        "table": table(
            ["step", "line", "phase", *stats["labels"]],
            [
                [i, step.line or "", step.phase, *numbers]
                for i, (step, numbers) in enumerate(zip(steps, stats["values"], strict=True), 1)
            ],
            by_step=True,
        ),
    }
    return View("tiling", _title(trace, panels, product, _reused(steps), block), data, draw_still)


def _panels(trace, sites, touched, names):
    """Return the arrays to draw, a product's A, B and C first and shared ones last; and True for a product."""
    used = {sites[i].array for i in np.unique(touched).tolist() if i >= 0}
    drawn = [info for info in trace.arrays if info.name in used and info.space in ("global", "shared")]
    infos = {info.name: info for info in drawn}
    written = {s.array for s in sites if s.kind != "load"}
    global_names = [name for name, info in infos.items() if info.space == "global"]
    product = _product(trace, {s.array for s in sites if s.space == "global"}, written, names)
    order = product or sorted(global_names, key=lambda name: name in written)
    roles = dict(zip(product, "ABC", strict=False)) if product else {}
    inputs = iter("ABABABAB")
    panels = []
    for name in [*order, *(n for n in global_names if n not in order)]:
        role = roles.get(name) or ("C" if name in written else next(inputs, "A"))
        panels.append(_panel(trace.array(name), role))
    by_name = {panel["name"]: panel["role"] for panel in panels}
    sources = {sites[store].array: sites[load].array for store, load in copies(sites).items()}
    for name, info in infos.items():
        if info.space == "shared":
            panels.append(_panel(info, by_name.get(sources.get(name), "C")))
    return panels, product is not None


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
    """Return names of arrays that fit M x K times K x N into M x N: the given ones, else others, else None."""
    global_arrays = [info for info in trace.arrays if info.space == "global" and info.name in used]
    shapes = {info.name: info.shape for info in global_arrays if len(info.shape) == 2}

    def fits(a, b, c):
        if len({a, b, c}) < 3 or not {a, b, c} <= shapes.keys() or c not in written or {a, b} & written:
            return False
        (m, k), (k2, n), out = shapes[a], shapes[b], shapes[c]
        return k == k2 and out == (m, n)

    if fits(*names):
        return list(names)
    fitting = [[a, b, c] for a in shapes for b in shapes for c in shapes if fits(a, b, c)]
    return fitting[0] if fitting else None


def _rounds(phases):
    """Return the phases: runs of steps of one phase, and where, how long and how often a group of runs repeats."""
    runs = []
    for i, phase in enumerate(phases):
        if runs and runs[-1]["phase"] == phase:
            runs[-1]["steps"] += 1
        else:
            runs.append({"phase": phase, "first": i, "steps": 1})
    names = [run["phase"] for run in runs]
    best = (0, True, 0, 0, 0)
    for start in range(min(4, len(runs))):
        for period in range(2, min((len(runs) - start) // 2, 12) + 1):
            repeats = 1
            while names[start + repeats * period :][:period] == names[start:][:period]:
                repeats += 1
            if repeats > 1:  # a barrier ends an iteration
                best = max(best, (repeats * period, names[start] != "barrier", -start, -period, repeats))
    return {"runs": runs, "start": -best[2], "period": -best[3], "repeats": best[4]}


def _where(rounds, step):
    """Return the beginning of a step's sentence: its iteration, or its number."""
    run = max(i for i, r in enumerate(rounds["runs"]) if r["first"] <= step) - rounds["start"]
    if 0 <= run < rounds["period"] * rounds["repeats"]:
        return f"Iteration {run // rounds['period'] + 1} of {rounds['repeats']}, "
    return f"Step {step + 1}, "


def _reused(steps):
    """Say if values that were copied to shared memory are read more than once: then the copies are tiles."""
    return sum(step.copy_reads for step in steps) > sum(step.copies for step in steps) > 0


def _stats(steps):
    """Return the numbers to show large at each step."""
    counts = [(step.global_loads, step.shared_reads, step.copies, step.copy_reads) for step in steps]
    totals = np.cumsum(counts, axis=0).tolist() if steps else []
    if _reused(steps):
        # Without tiles the copies would not be made, and each read of a copy would be a global load.
        labels = ["global loads so far", "loads without tiles", "reads per load"]
        values = [[g, g - copied + reads, round(reads / copied, 1) if copied else 0] for g, _, copied, reads in totals]
        return {"labels": labels, "values": values, "times": [2]}
    if any(step.copies or step.shared_reads for step in steps):
        labels = ["global loads so far", "shared reads so far"]
        return {"labels": labels, "values": [[g, reads] for g, reads, _, _ in totals], "times": []}
    seen, values = set(), []
    for step, (loads, *_) in zip(steps, totals, strict=True):
        seen |= step.loaded
        values.append([loads, len(seen), round(loads / len(seen), 1) if seen else 0])
    labels = ["global loads so far", "different elements", "loads of each"]
    return {"labels": labels, "values": values, "times": [2]}


def _title(trace, panels, product, tiled, block):
    where = f"block {block_name(block)} of `{trace.kernel}`"
    if product:
        where += " for a {} x {} product".format(*panels[2]["shape"])
    shared = [p for p in panels if p["space"] == "shared"]
    if tiled:
        return f"Tiling: {where}, tiles of {' x '.join(map(str, shared[0]['shape']))} in shared memory"
    return f"Accesses: {where}, {'with' if shared else 'no'} shared memory"
