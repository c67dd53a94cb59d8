"""The outputs of one lane, its warp and its block, and the lanes that load the same values."""

from math import prod

import numpy as np

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import View, pack, table, unpack
from labkit.views.wording import block_name, check_trace, join, recorded_block


def outputs(trace: Trace, block=None, warp: int = 0) -> View:
    """Step through the lanes of a warp: what each computes, and with which others it shares what it loads.

    Parameters
    ----------
    trace
        A run that recorded the block, of a kernel that writes a matrix.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.
    warp
        The warp within the block.
    """
    check_trace("outputs", trace)
    block, rows = recorded_block(trace, block)
    name, owner, corner = _owners(trace, rows)
    lanes = range(min(WARP_LANES, prod(trace.block) - WARP_LANES * warp))
    places_of = [np.argwhere(owner == WARP_LANES * warp + lane) for lane in lanes]
    if not any(map(len, places_of)):
        raise ValueError(f"Warp {warp} of block {block_name(block)} stores nothing into {name}: choose another warp.")
    rows_of = [np.unique(places[:, 0]) for places in places_of]
    columns_of = [np.unique(places[:, 1]) for places in places_of]
    loaded = _loaded(trace, rows, warp, lanes)
    down, across = _ranks(rows_of), _ranks(columns_of)
    classes_of = {array: _ranks(elements) for array, elements in loaded.items()}
    roles = {array: "B" if classes == across and classes != down else "A" for array, classes in classes_of.items()}
    classes_of = {array: classes_of[array] for array in sorted(classes_of, key=roles.__getitem__)}
    sentences = [
        _sentence(lane, warp, len(places_of[lane]), len(rows_of[lane]), len(columns_of[lane]), classes_of)
        for lane in lanes
    ]
    multiply_adds = trace.counters.flops / 2
    loads = trace.counters.shared_loads or trace.counters.global_loads
    space = "shared" if trace.counters.shared_loads else "global"
    top, left = corner
    data = {
        "say": sentences,
        "counter": [f"lane {lane}" for lane in lanes],
        "array": name,
        "owner": pack(owner),
        "warp": warp,
        "down": down,
        "across": across,
        "loaded": [{"array": array, "role": roles[array], "alike": classes} for array, classes in classes_of.items()],
        "stats": {
            "outputs of this lane": [len(places) for places in places_of],
            "rows and columns of the warp": " + ".join(
                str(len(np.unique(np.concatenate(sets)))) for sets in (rows_of, columns_of)
            ),
            f"{space} loads for each multiply-add": f"{loads / multiply_adds:.4g}" if multiply_adds else "",
        },
        "table": table(
            ["lane", f"rows of {name}", f"columns of {name}", *(f"same of {array} as lanes" for array in classes_of)],
            [
                [
                    lane,
                    _ranges(rows_of[lane] + top),
                    _ranges(columns_of[lane] + left),
                    *(_ranges(np.flatnonzero(np.array(classes) == classes[lane])) for classes in classes_of.values()),
                ]
                for lane in lanes
            ],
            by_step=True,
        ),
    }
    return View("outputs", f"Outputs: warp {warp} of block {block_name(block)} of `{trace.kernel}`", data, draw_still)


def _owners(trace, rows):
    """Return the matrix that the block writes most, the thread that stores each of its elements, and their corner."""
    samples = trace.samples
    stores = {}
    for number, counted in enumerate(trace.sites):
        site = counted.site
        if (site.space, site.kind) == ("global", "store") and len(trace.array(site.array).shape) == 2:
            stores.setdefault(site.array, []).append((number, site.elements))
    stored = {name: [] for name in stores}
    for name, sites in stores.items():
        for number, elements in sites:
            sample_rows = rows[samples.site[rows] == number]
            thread = samples.warp[sample_rows][:, None] * WARP_LANES + np.arange(WARP_LANES)
            first = samples.index[sample_rows]
            for n in range(elements):
                stored[name].append(np.stack([thread[first >= 0], first[first >= 0] + n]))
    stored = {name: np.concatenate(parts, axis=1) for name, parts in stored.items()}
    name = max(stored, key=lambda name: stored[name].shape[1], default=None)
    if name is None or not stored[name].size:
        raise ValueError("outputs shows which thread computes which element of a matrix; this block stored none.")
    thread, element = stored[name]
    row, column = np.divmod(element, trace.array(name).shape[1])
    top, left = row.min(), column.min()
    owner = np.full((row.max() - top + 1, column.max() - left + 1), -1)
    owner[row - top, column - left] = thread
    return name, owner, (top, left)


def _loaded(trace, rows, warp, lanes):
    """Return the elements that each lane loads, by array: of shared memory if the kernel reads it, else of global."""
    samples = trace.samples
    loads = [(n, c.site) for n, c in enumerate(trace.sites) if c.site.kind == "load"]
    space = "shared" if any(site.space == "shared" for _, site in loads) else "global"
    indices_by_array = {}
    for number, site in loads:
        if site.space == space:
            sample_rows = rows[(samples.site[rows] == number) & (samples.warp[rows] == warp)]
            indices_by_array.setdefault(site.array, []).append(samples.index[sample_rows])
    stacked = {array: np.concatenate(parts) for array, parts in indices_by_array.items()}
    return {array: [np.unique(index[:, lane]) for lane in lanes] for array, index in stacked.items() if index.size}


def _ranks(sets):
    """Number the lanes: equal sets get equal numbers, in the order of the sets' first elements."""
    keys = [tuple(elements.tolist()) for elements in sets]
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [order[key] for key in keys]


def _sentence(lane, warp, count, rows, columns, classes_of):
    outputs = "1 output" if count == 1 else f"{count} outputs"
    shape = f", in {rows} row{'s'[: rows != 1]} and {columns} column{'s'[: columns != 1]}" if count > 1 else ""
    shared = join(
        [f"of `{array}` as {_others(classes.count(classes[lane]) - 1)}" for array, classes in classes_of.items()]
    )
    return f"Lane {lane} of warp {warp} computes **{outputs}**{shape}." + (
        f" It loads the same values {shared}." if shared else ""
    )


def _others(count):
    return "no other lane" if count == 0 else "1 other lane" if count == 1 else f"{count} others"


def _ranges(numbers):
    """Return whole numbers as text: "0-3, 64-67"."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs if len(run))


def draw_still(figure, data, step):
    """Draw the block's part of the matrix, and the warp's lanes in their arrangement."""
    owner, warp = unpack(data["owner"]).astype(int), data["warp"]
    cells = np.tile(stills.rgb("cell"), (*owner.shape, 1))
    for mask, strength in ((owner >= 0, 0.15), (owner // WARP_LANES == warp, 0.6)):
        cells[mask] = stills.tint("C", strength)
    cells[owner == WARP_LANES * warp + step] = stills.rgb("hot")
    stills.set_size_and_title(figure, data, step, 9.5, 4.2)
    left, right = figure.subplots(1, 2)
    stills.show_cells(left, cells, data["array"], "C")
    grid = np.tile(stills.rgb("cell"), (max(data["down"]) + 1, max(data["across"]) + 1, 1))
    lane_positions = list(zip(data["down"], data["across"], strict=True))
    for lane, place in enumerate(lane_positions):
        for loaded in data["loaded"]:
            if loaded["alike"][lane] == loaded["alike"][step]:
                grid[place] = stills.tint(loaded["role"], 0.6)
        stills.write(right, place[1], place[0], lane, fontsize=6)
    grid[lane_positions[step]] = stills.rgb("hot")
    stills.show_cells(right, grid, "lanes of the warp", aspect="auto" if grid.shape[1] > 16 else "equal")
