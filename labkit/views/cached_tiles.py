"""Blocked loops with several tiles: which lines of the current three tiles the first cache still holds."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64
from matplotlib.patches import Rectangle

from labkit.loops import LoopTrace
from labkit.machine.gpus import CacheLevel, Cpu
from labkit.simulator.caches import NO_LINE, Cache, make_cache, touch
from labkit.simulator.seam import njit
from labkit.table import short_number
from labkit.views import stills
from labkit.views.base import COLOURS, View, layout_data, pack, table, unpack
from labkit.views.misses import misses_by_array
from labkit.views.wording import check_trace, join

OUTSIDE, OTHER, CURRENT = range(3)  # a line of the tiles that was evicted; a line of other tiles; one of the tiles


def cached_tiles(traces: Mapping[int, LoopTrace], cpu: Cpu) -> View:
    """Step through tile sizes: three tiles, the lines of them in the first cache, and the misses of whole runs.

    Each picture shows the moment at which the last recorded product of whole tiles is complete.

    Parameters
    ----------
    traces
        Traces of loops that add a product of A and B to C tile by tile, by the side of their tiles. Each has recorded
        at least one product of three tiles.
    cpu
        The CPU whose first cache is shown.

    Raises
    ------
    ValueError
        A trace recorded no complete product of tiles.
    """
    moments = {}
    for side, trace in traces.items():
        check_trace("cached_tiles", trace, LoopTrace)
        moments[side] = _last_product(side, trace, cpu.caches[0])
    counts = {side: misses_by_array(trace) for side, trace in traces.items()}
    capacity = cpu.caches[0].bytes // cpu.caches[0].line_bytes
    first = next(iter(traces.values()))
    rows = [
        [side, *map(moment.count, (CURRENT, OTHER, OUTSIDE)), *map(short_number, counts[side].values())]
        for side, moment in moments.items()
    ]
    per_array = [f"misses of {info.name} per 1,000 multiply-adds" for info in first.arrays]
    names = ["tile", "lines of the tiles in L1", "other lines in L1", "lines of the tiles outside", *per_array]
    data = {
        "say": [_sentence(side, moment, counts[side], capacity) for side, moment in moments.items()],
        "counter": [f"tile {side}" for side in traces],
        "sides": list(traces),
        "arrays": [{"name": info.name, **layout_data(info)} for info in first.arrays],
        "capacity": capacity,
        "boxes": pack(np.array([moment.boxes for moment in moments.values()])),
        "lines": [pack(moment.lines) for moment in moments.values()],
        "misses": pack(np.array([list(count.values()) for count in counts.values()], np.float32)),
        "table": table(names, rows, by_step=True),
    }
    return View("cached_tiles", f"Three tiles, and a cache of {capacity} lines", data, draw_still)


@dataclass(frozen=True)
class Moment:
    """The end of one product of tiles.

    `boxes` has first and last row, first and last column of each array's tile. `lines` has a row for each line that
    belongs to the tiles or is in the cache: array, first and last element (flat indices), and its state.
    """

    boxes: Int64[np.ndarray, "arrays 4"]
    lines: Int64[np.ndarray, "lines 4"]

    def count(self, state: int) -> int:
        """Return how many lines are in a state."""
        return int((self.lines[:, 3] == state).sum())


def _last_product(side, trace: LoopTrace, level: CacheLevel) -> Moment:
    """Return the end of the last recorded product of whole tiles."""
    sites = [counted.site for counted in trace.sites]
    position = {info.name: number for number, info in enumerate(trace.arrays)}
    array = np.array([position[site.array] for site in sites])[trace.samples.site]
    is_store = np.array([site.kind == "store" for site in sites])[trace.samples.site]
    begin, end = _product_bounds(side, trace, array, is_store)
    index = trace.samples.index
    lines = np.empty(end, np.int64)
    boxes = []
    for number, info in enumerate(trace.arrays):
        of_array = array[:end] == number
        lines[of_array] = info.pieces(index[:end][of_array], level.line_bytes)
        rows, columns = np.divmod(index[begin:end][of_array[begin:]], info.shape[1])
        boxes.append([rows.min(), rows.max(), columns.min(), columns.max()])
    cache = make_cache(level.bytes, level.ways, level.line_bytes, level.line_bytes)
    _touch_all(cache, lines)
    held, of_tiles = {*cache.lines.ravel().tolist()} - {NO_LINE}, set(lines[begin:end].tolist())
    owners = dict(zip(lines.tolist(), array[:end].tolist()))
    rows = []
    for line in sorted(held | of_tiles):
        ends = trace.arrays[owners[line]].elements_in(line, level.line_bytes)[[0, -1]].tolist()
        rows.append([owners[line], *ends, OUTSIDE if line not in held else CURRENT if line in of_tiles else OTHER])
    return Moment(np.array(boxes), np.array(rows))


def _product_bounds(side, trace: LoopTrace, array, is_store) -> list[int]:
    """Return the first access of a product of tiles, and of the next product.

    A product begins where the accesses of B, the second array, reach another tile.
    """
    of_b = np.flatnonzero(array == 1)
    k, j = np.divmod(trace.samples.index[of_b], trace.arrays[1].shape[1])
    tile = k // side * trace.arrays[1].shape[1] + j // side
    first_of_b = of_b[np.flatnonzero(np.diff(tile, prepend=-1))]
    if len(first_of_b) < 2:
        raise ValueError(
            f"{trace.kernel} recorded {len(array):,} accesses, and no complete product of tiles of {side}: record more."
        )
    stores = np.flatnonzero(is_store)
    ends = np.append(0, 1 + stores)  # of multiply-adds, each of which ends with a store to C
    bounds = ends[np.searchsorted(stores, first_of_b)]
    accesses = np.diff(bounds)
    last = np.flatnonzero(accesses == accesses.max())[-1]  # the last whole one, as tiles at an edge are smaller
    return bounds[last : last + 2].tolist()


@njit(cache=True)
def _touch_all(cache: Cache, lines):
    for n in range(lines.size):
        touch(cache, 0, lines[n], False)


def _sentence(side, moment, counts, capacity):
    inside, outside = moment.count(CURRENT), moment.count(OUTSIDE)
    total = sum(counts.values())
    parts = join([f"{name} {short_number(count)}" for name, count in counts.items()])
    evicted = f"**{outside} of their lines were evicted** before the product ended"
    fate = evicted if outside else "All of their lines stay in it"
    return (
        f"T = {side}: the three tiles have {inside + outside} lines, and the cache has room for {capacity}. {fate}. "
        f"The whole run misses **{short_number(total)}** times per 1,000 multiply-adds ({parts})."
    )


def draw_still(figure, data, step):
    """Draw the three matrices with the lines in the cache, and the misses over the tiles."""
    stills.set_size_and_title(figure, data, step, 8.6, 4.6)
    grid = figure.subplot_mosaic([["", "B", "bars"], ["A", "C", "bars"]])
    grid[""].axis("off")
    lines, boxes = unpack(data["lines"][step]), unpack(data["boxes"])[step]
    for number, info in enumerate(data["arrays"]):
        cells = np.ones((int(np.prod(info["shape"])), 3)) * stills.rgb("cell")
        for array, first, last, state in lines.tolist():
            if array == number and state != OUTSIDE:
                cells[first : last + 1] = stills.tint(info["name"], 0.9 if state == CURRENT else 0.35)
        axes = grid[info["name"]]
        stills.show_cells(axes, cells.reshape(*info["shape"], 3), info["name"])
        top, bottom, left, right = boxes[number].tolist()
        frame = Rectangle((left - 0.5, top - 0.5), right - left + 1, bottom - top + 1)
        frame.set(fill=False, edgecolor=COLOURS["fg"])
        axes.add_patch(frame)
    left = np.zeros(len(data["sides"]))
    names = [f"T = {side}" for side in data["sides"]]
    for info, values in zip(data["arrays"], unpack(data["misses"]).T, strict=True):
        grid["bars"].barh(names, values, left=left, color=COLOURS[info["name"]])
        left += values
    grid["bars"].set_xlabel("L1 misses per 1,000 multiply-adds", fontsize=8)
    grid["bars"].invert_yaxis()
    stills.hide_top_and_right(grid["bars"])
