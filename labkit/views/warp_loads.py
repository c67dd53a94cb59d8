"""What one warp of a matrix product loads in each step, in the matrices themselves; two mappings are side by side."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from labkit.trace import SECTOR_BYTES, Trace
from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack
from labkit.views.wording import block_name, check_traces, join, recorded_block

EARLIER, MOVED, UNTOUCHED, OUTPUTS = 0.55, 0.28, 0.1, 0.45  # strength of a cell's colour


def warp_loads(runs: Mapping[str, Trace], *, sectors: bool = True, warp: int = 0, arrays: str = "ABC") -> View:
    """Step through the loads of one warp: A left, B above, and the elements of C that the warp computes.

    Parameters
    ----------
    runs
        Runs of kernels that multiply matrices of the same shapes, by the name to show.
    sectors
        Mark the sectors that move, and count them; else only the elements that the lanes load, and count loads.
    warp
        The warp within the first recorded block.
    arrays
        Names of the matrices in the kernels: M x K, K x N, M x N.
    """
    check_traces("warp_loads", runs)
    panels = None
    all_sides = []
    for name, trace in runs.items():
        of_trace = [_shape(trace, array) for array in arrays]
        if panels not in (None, of_trace):
            raise ValueError("warp_loads compares products of one size: the matrices have other shapes.")
        panels = of_trace
        all_sides.append(_side(name, trace, warp, arrays))
    (rows, depth), (depth_of_B, columns), of_C = panels or [(0, 0)] * 3
    if depth != depth_of_B or of_C != (rows, columns):
        raise ValueError("warp_loads draws a product: matrices of M x K, K x N and M x N.")
    count = min(len(side["counts"]) for side in all_sides)
    says = [_sentence(all_sides, step, arrays, sectors) for step in range(count)]
    what = "sectors moved" if sectors else "loads"
    numbers = np.array(
        [[sum(side["counts" if sectors else "lanes"][step]) for side in all_sides] for step in range(count)]
    )
    labels = [f"{what} so far, {name}" for name in runs]
    block = recorded_block(next(iter(runs.values())))[0]
    data = {
        "say": says,
        "panels": [{"name": name, "shape": shape} for name, shape in zip(arrays, panels or [], strict=True)],
        "sectors": sectors,
        "sides": [{key: side[key] for key in ("name", "used", "moved", "outputs")} for side in all_sides],
        **stats_by_step(["step"], [[step + 1] for step in range(count)], labels, numbers.cumsum(axis=0).tolist()),
    }
    return View("warp_loads", f"What one warp loads: warp {warp} of block {block_name(block)}", data, draw_still)


def _shape(trace, name):
    shapes = {info.name: info.shape for info in trace.arrays if info.space == "global"}
    if len(shapes.get(name, ())) != 2:
        raise ValueError(f"{trace.kernel} has no matrix {name}: name its matrices by `arrays`.")
    return shapes[name]


def _side(name, trace, warp, arrays):
    """Return a run's data: which elements each step uses and which move, as rows of (step, matrix, element)."""
    _, rows = recorded_block(trace)
    samples = trace.samples
    rows = [row for row in rows[samples.warp[rows] == warp] if _site(trace, samples.site[row]).array in arrays]
    used, moved, counts, lanes, outputs = [], [], [], [], []
    for step, (first, end) in enumerate(pairwise(_offsets([_site(trace, samples.site[row]) for row in rows]))):
        counts.append([0] * len(arrays))
        lanes.append([0] * len(arrays))
        for row in rows[first:end]:
            site = _site(trace, samples.site[row])
            matrix, info = arrays.index(site.array), trace.array(site.array)
            elements = samples.index[row][samples.index[row] >= 0]
            if site.kind == "load":
                lanes[-1][matrix] += len(elements)
            else:
                outputs.extend(elements.tolist())
            addresses = info.base_address + info.itemsize * elements.astype(np.int64)
            pieces = np.unique(addresses // SECTOR_BYTES)
            counts[-1][matrix] += len(pieces)
            used += [(step, matrix, int(element)) for element in np.unique(elements)]
            moved += [(step, matrix, int(e)) for piece in pieces for e in info.elements_in(int(piece), SECTOR_BYTES)]
    return {
        "name": name,
        "used": pack(np.array(used)),
        "moved": pack(np.array(moved)),
        "outputs": sorted(set(outputs)),
        "counts": counts,
        "lanes": lanes,
        "stores": {step for step, matrix, _ in used if arrays[matrix] == arrays[2]},
    }


def _site(trace, number):
    return trace.sites[number].site


def _offsets(sites):
    """Return where steps begin: a step ends where a site comes again, or where stores follow loads."""
    offsets, seen, kind = [0], set(), None
    for row, site in enumerate(sites):
        if site in seen or kind not in (None, site.kind):
            offsets.append(row)
            seen = set()
        seen.add(site)
        kind = site.kind
    return [*offsets, len(sites)]


def _sentence(sides, step, arrays, sectors):
    parts = []
    for side in sides:
        counts = side["counts" if sectors else "lanes"][step]
        of = join([f"{count} of {array}" for array, count in zip(arrays, counts, strict=True) if count])
        parts.append(f"{side['name']}: **{sum(counts)}**" + (f" ({of})" if of else ""))
    if step in sides[0]["stores"]:
        what = "Store: sectors that the 32 sums take" if sectors else "Store: the warp writes its 32 sums"
        return f"{what}. {'; '.join(parts)}." if sectors else f"{what}."
    return f"Step {step + 1}: {'sectors that move' if sectors else 'loads of the 32 threads'}. {'; '.join(parts)}."


def draw_still(figure, data, step):
    """Draw the matrices of each run at a step."""
    stills.set_size_and_title(figure, data, step, 9.5, 4.8)
    (rows, depth), (_, columns), _ = (panel["shape"] for panel in data["panels"])
    for axes, side in zip(np.ravel(figure.subplots(1, len(data["sides"]))), data["sides"], strict=True):
        sheet = np.ones((depth + 2 + rows, depth + 2 + columns, 3))
        corners = [(depth + 2, 0), (0, depth + 2), (depth + 2, depth + 2)]
        for matrix, (panel, (top, left)) in enumerate(zip(data["panels"], corners, strict=True)):
            height, width = panel["shape"]
            sheet[top : top + height, left : left + width] = cell_colours(data, side, matrix, step)
        stills.show_cells(axes, sheet, side["name"], lines=0.3)


def cell_colours(data, side, matrix, step):
    """Return the colours of a matrix's cells at a step, rows x columns x RGB."""
    name, shape = "ABC"[matrix], data["panels"][matrix]["shape"]
    strength = np.full(int(np.prod(shape)), UNTOUCHED)
    moved, used = (rows[rows[:, 1] == matrix] for rows in (unpack(side["moved"]), unpack(side["used"])))
    if data["sectors"]:
        strength[moved[moved[:, 0] <= step, 2]] = MOVED
    if matrix == 2:
        strength[side["outputs"]] = OUTPUTS
    strength[used[used[:, 0] <= step, 2]] = EARLIER
    cells = stills.tint(name, strength)
    if data["sectors"]:
        cells[moved[moved[:, 0] == step, 2]] = stills.tint("hot", np.array(0.3))
    cells[used[used[:, 0] == step, 2]] = stills.rgb("hot")
    return cells.reshape(*shape, 3)
