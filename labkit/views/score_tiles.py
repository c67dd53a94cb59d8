"""Tiles of scores over time: what an attention kernel holds on chip, and the bytes that it moved for them."""

from collections.abc import Mapping

import numpy as np

from labkit.attention import AttentionForward
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import check_trace, global_outputs

# what is shown: the arrays of kernels whose bytes it counts
METERS = {"Q": ("Q",), "K, V": ("K", "V"), "O": ("O",), "sums": ("row_maxima", "row_sums", "lse")}


def score_tiles(problem: AttentionForward, runs: Mapping[str, Trace], scale_bytes: int | None = None) -> View:
    """Step through the tiles of scores that kernels compute, side by side; a tile is gone when the next one comes.

    Parameters
    ----------
    problem
        Of one head, whose kernels these are.
    runs
        Runs by their names, with all blocks recorded: of kernels that load a tile of `Q` and of `K` before they
        multiply them, as those of the steps `kv_outer` and `q_outer` do.
    scale_bytes
        Bytes at the right end of the bars, so that pictures with the same number can be compared; the most that one
        of these runs moves if left out.
    """
    if not isinstance(runs, Mapping) or not runs:
        raise TypeError("score_tiles takes runs by their names: score_tiles(problem, {'rows': trace}).")
    for trace in runs.values():
        check_trace("score_tiles", trace)
    if problem.batch * problem.heads != 1:
        raise ValueError(f"The picture has room for one head, and there are {problem.batch * problem.heads}: show one.")
    runs_data = [{"name": name, **_run(problem, trace)} for name, trace in runs.items()]
    steps = max(len(run["visits"]) for run in runs_data)
    says = [_sentence(runs_data, step) for step in range(steps)]
    totals = {run["name"]: sum(run["visits"][-1][2:]) for run in runs_data}
    if len(totals) > 1:
        says[-1] += _comparison(totals)
    rows = [
        [step + 1, run["name"], *_numbers(run, step)]
        for step in range(steps)
        for run in runs_data
        if step < len(run["visits"])
    ]
    data = {
        "say": says,
        "runs": [{**run, "visits": pack(np.array(run["visits"])), "told": None} for run in runs_data],
        "labels": list(METERS),
        "scale_bytes": scale_bytes or max(totals.values()),
        "queries": problem.queries,
        "keys": problem.keys,
        "head_dim": problem.head_dim,
        "scores": 4 * problem.queries * problem.keys,
        "table": table(["step", "run", "queries", "keys", *(f"bytes of {name}" for name in METERS)], rows),
    }
    return View("score_tiles", "Tiles of scores on chip, and bytes moved for them", data, draw_still)


def _run(problem, trace) -> dict:
    """Return the tiles of a run, the bytes that were moved until each was done, and the state of its last row."""
    visits = tile_visits(trace)
    if not visits:
        raise ValueError("No block of this run is recorded, or it loads no Q and K: simulate with record=all blocks.")
    height, width = (max(len(visit[axis]) for visit in visits) for axis in (0, 1))
    (Q, K), allowed = (global_outputs(trace)[name].astype(float) for name in "QK"), problem.allowed()
    exponents = np.where(allowed, problem.factor * (Q @ K.T), -np.inf)
    down, across = -(-problem.queries // height), -(-problem.keys // width)
    visible = [
        [bool(allowed[i * height : (i + 1) * height, j * width : (j + 1) * width].any()) for j in range(across)]
        for i in range(down)
    ]
    tiles, row_states, state = [], [], {}
    for queries, keys, moved in visits:
        row = queries[-1]
        before = state.get(row, (-np.inf, 0.0))
        scores = exponents[row, keys]
        row_max = max(before[0], scores.max())
        alpha = np.exp(before[0] - row_max) if np.isfinite(before[0]) else 0.0
        state[row] = row_max, before[1] * alpha + np.exp(scores - row_max).sum() if np.isfinite(row_max) else 0.0
        tiles.append([queries[0] // height, keys[0] // width, *moved])
        row_states.append((int(row), queries, keys, float(alpha), *map(float, state[row]), bool(before[1])))
    return {
        "visits": tiles,
        "told": row_states,
        "seen": visible,
        "down": down,
        "across": across,
        "tile": [height, width],
    }


def tile_visits(trace) -> list[tuple[list[int], list[int], list[int]]]:
    """Return each tile of scores: its queries, its keys, and the bytes of each meter until the next tile begins."""
    sites = [counted.site for counted in trace.sites]
    widths = {info.name: info.shape[-1] for info in trace.arrays}
    bytes_of = dict.fromkeys((name for names in METERS.values() for name in names), 0)
    visits, samples = [], trace.samples
    for block in sorted(range(len(samples.blocks)), key=lambda block: samples.blocks[block][::-1]):
        rows_of, stale, computed = {"Q": set(), "K": set()}, set(), False

        def close(rows_of=rows_of):
            moved = [sum(bytes_of[name] for name in names) for names in METERS.values()]
            visits.append((sorted(rows_of["Q"]), sorted(rows_of["K"]), moved))

        for number in np.flatnonzero((samples.block == block) & (samples.site >= 0)):
            site, lanes = sites[samples.site[number]], samples.index[number]
            lanes = lanes[lanes >= 0]
            if site.space == "shared" and site.kind == "load":
                computed = True
            elif site.space == "global" and site.array in bytes_of:
                if site.kind == "load" and site.array in rows_of:
                    if computed:
                        close()
                        stale, computed = {"Q", "K"}, False
                    if site.array in stale:
                        rows_of[site.array].clear()
                        stale.discard(site.array)
                    rows_of[site.array].update((lanes // widths[site.array]).tolist())
                bytes_of[site.array] += len(np.unique(lanes)) * site.bytes  # lanes of a row load its sum together
        if computed:
            close()
    return visits


def _numbers(run, step):
    _, queries, keys, *_ = run["told"][step]
    return [f"{queries[0]} to {queries[-1]}", f"{keys[0]} to {keys[-1]}", *run["visits"][step][2:]]


def _sentence(runs, step):
    words = []
    for run in runs:
        if step >= len(run["told"]):
            words.append(f"`{run['name']}` is done.")
            continue
        row, queries, keys, alpha, row_max, row_sum, had_keys = run["told"][step]
        says = f"`{run['name']}`: queries {queries[0]} to {queries[-1]} meet keys {keys[0]} to {keys[-1]}. "
        if had_keys and alpha < 1:
            says += f"Query {row} finds a larger score: what it had **shrinks to {alpha:.0%}**; "
        elif had_keys:
            says += f"Query {row} finds no larger score; "
        else:
            says += f"Query {row} begins; "
        words.append(says + f"its maximum is {row_max:.2f}, its sum {row_sum:.1f}.")
    return " ".join(words)


def _comparison(totals: dict[str, int]) -> str:
    """Compare the bytes that the runs with the most and the fewest moved."""
    most, fewest = (choose(totals, key=lambda name: totals[name]) for choose in (max, min))
    if totals[most] == totals[fewest]:
        return ""
    return f" In all, `{most}` moved **{totals[most] / totals[fewest]:.1f}x** the bytes of `{fewest}`."


def draw_still(figure, data, step):
    """Draw the tiles and the meters of each run at a step."""
    runs = data["runs"]
    stills.set_size_and_title(figure, data, step, 4.6 * len(runs) + 0.6, 4.4, wrap=True)
    axes_grid = figure.subplots(2, len(runs), height_ratios=[3, 1], squeeze=False)
    for (grid, meter), run in zip(axes_grid.T, runs, strict=True):
        cells, moved = colours_and_bytes(run, step)
        stills.show_cells(grid, cells, run["name"], lines=1, aspect="auto")
        grid.set_xlabel("keys", fontsize=8)
        grid.set_ylabel("queries", fontsize=8)
        left = 0
        for name, amount, colour in zip(data["labels"], moved, ("A", "B", "C", "dim"), strict=True):
            meter.barh(0, amount, left=left, color=COLOURS[colour], label=name)
            left += amount
        meter.set_xlim(0, data["scale_bytes"])
        meter.set_yticks([])
        meter.set_xlabel(f"{left:,.0f} bytes moved", fontsize=8)
        meter.tick_params(labelsize=7)
        meter.spines[:].set_visible(False)
        meter.legend(fontsize=7, ncols=4, frameon=False, loc="upper left", bbox_to_anchor=(0, 1.6))


def colours_and_bytes(run, step):
    """Return the tiles of a run as colours, and its meters."""
    visits = unpack(run["visits"])
    now = min(step, len(visits) - 1)
    cells = np.tile(stills.rgb("line"), (run["down"], run["across"], 1))
    cells[np.array(run["seen"])] = stills.rgb("cell")
    done_colour = stills.tint("A", 0.35)
    cells[tuple(visits[:now, :2].T)] = done_colour
    cells[tuple(visits[now, :2])] = stills.rgb("hot") if step < len(visits) else done_colour
    return cells, visits[now, 2:].tolist()
