"""A ring of tiles in shared memory over time: which stages are filled, used or free, and by which warps."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, pack, table, unpack
from labkit.views.wording import block_name, check_trace, join, recorded_block

FREE, FILLED, USED = range(3)  # what a stage is
MOST_STEPS = 400


def pipeline(trace: Trace, array: str | None = None, block=None) -> View:
    """Step through the stages of a ring: which warps fill one, which use one, which copies are in flight.

    Time is the order in which the simulator ran the block. A step is a run of accesses to one stage, all to fill it or
    all to use it. A stage counts as in flight from when its copy begins until a warp first uses it. Tiles are used in
    the order in which they were begun: in a ring that is too short, where the copy of one begins before the last one of
    its stage is used, the step is marked. Where threads load a tile into registers before a stage is used, and store it
    afterwards, these loads are in flight meanwhile.

    Parameters
    ----------
    trace
        A run that recorded the block.
    array
        The ring, a shared array whose first axis are its stages; the first with three axes if left out.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.

    Raises
    ------
    ValueError
        The kernel has no such ring.
    """
    check_trace("pipeline", trace)
    block, rows = recorded_block(trace, block)
    rings = [info for info in trace.arrays if info.space == "shared" and len(info.shape) >= 3]
    info = next((ring for ring in rings if array in (None, ring.name)), None)
    runs, loading_runs = _runs(trace, rows, info) if info else ([], set())
    if info is None or not runs:
        raise ValueError(
            f"Block {block_name(block)} fills no ring{f' {array!r}' if array else ''}: pipeline shows a shared array "
            "with three axes, the first of which are the stages."
        )
    stages = info.shape[0]
    state, tile, next_tile = np.zeros(stages, int), np.full(stages, -1), 0
    waiting = [[] for _ in range(stages)]  # tiles that were begun and are still to be used
    states, tiles, ahead, early, loading, says, lines = [], [], [], [], [], [], []
    for number, (fills, stage, warps, line) in enumerate(runs[:MOST_STEPS]):
        for used in np.flatnonzero(state == USED):  # by now, unless this step uses it
            state[used], tile[used] = (FILLED, waiting[used][-1]) if waiting[used] else (FREE, tile[used])
        overwritten = waiting[stage][-1] if fills and waiting[stage] else None
        if fills:
            state[stage], tile[stage] = FILLED, next_tile
            waiting[stage].append(next_tile)
            next_tile += 1
        else:
            state[stage], tile[stage] = USED, waiting[stage].pop(0) if waiting[stage] else tile[stage]
        states.append(state.copy())
        tiles.append(tile.copy())
        early.append(overwritten is not None)
        in_flight = sorted(begun for numbers in waiting for begun in numbers)
        ahead.append(len(in_flight))
        loading.append(next_tile if number in loading_runs else -1)
        said = _sentence(fills, stage, warps, line, state, tile, in_flight, overwritten)
        says.append(said + (f" Loads of tile {next_tile} are in flight to registers." if loading[-1] >= 0 else ""))
        lines.append([len(lines) + 1, line, "fill" if fills else "use", stage, int(tile[stage]), _warps_text(warps)])
    data = {
        "say": says,
        "stages": stages,
        "states": pack(np.array(states)),
        "tiles": pack(np.array(tiles)),
        "ahead": ahead,
        "early": early,
        "loading": loading if loading_runs else [],
        "at": pack(np.array([stage for _, stage, *_ in runs[:MOST_STEPS]])),
        "who": [_warps_text(warps) for _, _, warps, _ in runs[:MOST_STEPS]],
        "table": table(["step", "line", "does", "stage", "tile", "warps"], lines, by_step=True),
    }
    whose = f"of `{info.name}` in `{trace.kernel}`"
    return View("pipeline", f"Pipeline: the {stages} stage{'s'[: stages != 1]} {whose}", data, draw_still)


def _runs(trace, rows, info):
    """Return runs of accesses to one stage, and the numbers of those during which loads of the next fill are in flight.

    A run is a tuple: (it fills the stage, stage, warps, line of the first access).
    """
    stage_elements = int(np.prod(info.shape[1:]))
    copied_lines = {c.site.line for c in trace.sites if (c.site.space, c.site.kind) == ("shared", "store")}
    samples, runs, loaded, loading_runs = trace.samples, [], None, set()
    for row in rows:
        if samples.site[row] < 0:
            continue
        site = trace.sites[samples.site[row]].site
        if (site.space, site.kind) == ("global", "load") and site.line not in copied_lines and loaded is None:
            loaded = len(runs)  # the run before which these loads were issued
        if site.array != info.name or site.kind == "atomic":
            continue
        fills, stage = site.kind == "store", int(samples.index[row].max()) // stage_elements
        if not runs or runs[-1][:2] != (fills, stage):
            if fills and loaded is not None:
                loading_runs.update(range(loaded, len(runs)))
                loaded = None
            runs.append((fills, stage, set(), site.line))
        runs[-1][2].add(int(samples.warp[row]))
    return runs, loading_runs


def _warps_text(warps):
    """Return warps in words: warp 0, warps 0 and 2, or warps 4 to 11."""
    low, high = min(warps), max(warps)
    if low == high:
        return f"warp {low}"
    in_a_row = len(warps) == high - low + 1 > 2
    return f"warps {low} to {high}" if in_a_row else f"warps {join(list(map(str, sorted(warps))))}"


def _sentence(fills, stage, warps, line, state, tile, in_flight, overwritten):
    verb = "begins to fill" if len(warps) == 1 else "begin to fill"
    if not fills:
        verb = "uses" if len(warps) == 1 else "use"
    tiles = f"tile{'s'[: len(in_flight) != 1]} {join(list(map(str, in_flight)))}"
    busy = f"In flight or waiting: {tiles}. " if in_flight else ""
    free = [str(n) for n in np.flatnonzero(state == FREE)]
    free_stages = f"Free: stage{'s'[: len(free) != 1]} {join(free)}." if free else "No stage is free."
    where = f"stage {stage}" if overwritten is None else f"stage {stage}, where tile {overwritten} is still to be used"
    return f"Line {line}: **{_warps_text(warps)} {verb} tile {tile[stage]}**, in {where}. {busy}{free_stages}"


def draw_still(figure, data, step):
    """Draw the stages as rows, time to the right, with a frame around the step."""
    states, tiles = unpack(data["states"]), unpack(data["tiles"])
    shown = min(len(states), 40)
    rows = data["stages"] + bool(data["loading"])
    figure.set_size_inches(9.5, 0.4 * rows + 1.1)
    axes = figure.add_subplot()
    colours = [COLOURS["cell"], COLOURS["B"], COLOURS["C"]]
    for shown_step in range(shown):
        for stage in range(data["stages"]):
            state = states[shown_step, stage]
            is_early = data["early"][shown_step] and stage == unpack(data["at"])[shown_step]
            colour = COLOURS["hot"] if is_early else colours[state]
            axes.add_patch(Rectangle((shown_step, stage), 0.94, 0.9, facecolor=colour))
            if state != FREE:
                stills.write(axes, shown_step + 0.47, stage + 0.47, tiles[shown_step, stage], fontsize=7)
    for shown_step, tile in enumerate(data["loading"][:shown]):
        if tile >= 0:
            axes.add_patch(Rectangle((shown_step, data["stages"]), 0.94, 0.9, facecolor=COLOURS["A"]))
            stills.write(axes, shown_step + 0.47, data["stages"] + 0.47, tile, fontsize=7, color="white")
    if step < shown:
        axes.add_patch(Rectangle((step - 0.03, -0.05), 1, rows, fill=False, edgecolor=COLOURS["ink"]))
    axes.set(xlim=(-0.2, shown + 0.2), ylim=(rows + 0.1, -0.2), xlabel="steps", xticks=[])
    names = [*(f"stage {n}" for n in range(data["stages"])), "registers"]
    axes.set_yticks(np.arange(rows) + 0.45, names[:rows], fontsize=8)
    stills.hide_marks(axes)
    axes.set_title(heading(data, step), fontsize=8, loc="left", color=COLOURS["fg"])
