"""The work of a kernel's warpgroups and of the tensor cores that they keep busy, on one axis of time."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Rectangle

from labkit.forecast.tiles import copied_tiles
from labkit.forecast.timeline import Timeline, timeline
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import check_trace, join, type_name

INSTANTS = 60
ORDERS = {"alternates between warpgroups": True, "serves the first request": False}
COPY, EXP2, COMPUTE, GEMM_1, GEMM_2, WAIT_PRODUCTS, WAIT_COPY, WAIT_OTHERS, BUBBLE = range(9)
STYLES = {COPY: ("B", 0.8), EXP2: ("C", 0.9), COMPUTE: ("C", 0.4), GEMM_1: ("A", 0.95), GEMM_2: ("A", 0.5)}
WAIT_COLOURS = {WAIT_PRODUCTS: "A", WAIT_COPY: "B", WAIT_OTHERS: "dim"}
WAITS = {  # by what a span of waiting is of; else it is an array that a copy brings
    "products": (WAIT_PRODUCTS, "waits for tensor cores"),
    "stores": (WAIT_OTHERS, "stores its rows"),
    "turn": (WAIT_OTHERS, "waits for its turn"),
    "block": (WAIT_OTHERS, "waits for its block"),
    "": (WAIT_OTHERS, "waits for a free buffer"),
}
WARPGROUP_WARPS = 4  # of a warpgroup
RUN_FIELDS = "cycles", "idle", "edges", "lanes", "letters", "consumers", "tiles"  # of a run, in what is drawn
ISSUE_CYCLES = 200  # cycles in which a warpgroup may issue `wgmma`


def warp_timeline(
    runs: Mapping[str, Trace], products: Mapping[str, str] | None = None, end_cycles: float | None = None
) -> View:
    """Show kernels with a producer and consumers on one axis of time: copies, warpgroups and tensor cores.

    What happens in which order is the run's; cycles are those of a model, `labkit.forecast.timeline`, of one SM that
    runs the recorded blocks one after the other. A menu chooses how its tensor cores choose between warpgroups. Another
    menu, or a click on a copy, chooses a tile to follow: who waits for it, multiplies with it, and frees its stage.

    Parameters
    ----------
    runs
        Runs by their names, of kernels that multiply by `wgmma`, with the blocks recorded that are to be shown.
    products
        What tensor cores compute, by the shared array of the right operand: two names at most, which arrays
        may share, in the order of their colours; the arrays' own if left out.
    end_cycles
        End of the axis, for pictures that are compared; that of the longest run if left out.
    """
    if not isinstance(runs, Mapping) or not runs:
        raise TypeError(f"warp_timeline takes runs by their names, {{'wgmma': trace}}, not {type_name(runs)}.")
    for trace in runs.values():
        check_trace("warp_timeline", trace)
    arrays = dict.fromkeys(e.array for trace in runs.values() for e in trace.events if e.kind == "product")
    ordered = [*(array for array in products or () if array in arrays), *arrays]  # by the names given, then by time
    product_names = {array: (products or {}).get(array, array) for array in ordered}
    names = list(dict.fromkeys(product_names.values()))
    if len(names) > 2:
        raise ValueError(f"The picture has two colours for GEMMs, and these runs have {len(names)}: {join(names)}.")
    lines = {
        words: {name: timeline(trace, in_turns=in_turns) for name, trace in runs.items()}
        for words, in_turns in ORDERS.items()
    }
    longest = max(line.cycles for of_order in lines.values() for line in of_order.values())
    longest = max(longest, end_cycles or 0)
    drawn = [_order(of_order, product_names, longest) for of_order in lines.values()]
    common = {
        "orders": list(ORDERS),
        "cycles": longest,
        "products": names,
        "gpu": next(iter(lines[words].values())).gpu.name if (words := next(iter(ORDERS))) else "",
    }
    data = {**drawn[0], "chosen": 0, "kept": drawn, "common": common, "start": INSTANTS}
    return View("warp_timeline", f"What runs when: {join([f'`{name}`' for name in runs])}", data, draw_still)


def _order(lines: Mapping[str, Timeline], product_names, longest) -> dict:
    """Return what is drawn of one order in which tensor cores serve warpgroups, as JSON-ready data."""
    shown = {name: _run(line, product_names) for name, line in lines.items()}
    instants = [longest * n / INSTANTS for n in range(INSTANTS + 1)]
    states = [{name: _states(run, at) for name, run in shown.items()} for at in instants]
    says = [_sentence(at, of_runs) for at, of_runs in zip(instants, states, strict=True)]
    idle_shares = [
        f"**{run['idle']:.0%}** in `{name}` ({run['idle'] - run['edges']:.0%} between the products of a block)"
        for name, run in shown.items()
    ]
    says[-1] = f"Of the whole time, by this model, the tensor cores idle {join(idle_shares)}."
    rows = [
        [f"{at:,.0f}", *("; ".join(f"{who} {what}" for who, what in of.items()) or "done" for of in of_runs.values())]
        for at, of_runs in zip(instants, states, strict=True)
    ]
    return {
        "say": says,
        "runs": [
            {"name": name, **{key: run[key] for key in RUN_FIELDS}, "spans": pack(run["spans"])}
            for name, run in shown.items()
        ],
        "table": table(["cycle", *shown], rows, by_step=True),
    }


# --- lanes -----------------------------------------------------------------------------------------


def _run(line: Timeline, product_names) -> dict:
    """Return a run's lanes from top to bottom, and spans in them as rows of lane, kind, start and end."""
    consumers = sorted({span.warp // WARPGROUP_WARPS for span in line.spans if span.does == "product"})
    leaders = {group: group * WARPGROUP_WARPS for group in consumers}  # whose first warp stands for it
    numbers = {name: GEMM_1 + n for n, name in enumerate(dict.fromkeys(product_names.values()))}
    lanes = ["copies", *(f"warpgroup {n}" for n in range(1, len(consumers) + 1)), "tensor cores"]
    spans, words = [], []

    def add(lane, kind, start, end, text):
        if end > start:
            spans.append((lane, kind, start, end))
            words.append(text)

    copies = _copies(line)
    if not copies:
        lanes.remove("copies")
    for _, start, end in copies:
        add(0, COPY, start, end, "")
    for span in line.spans:
        group = span.warp // WARPGROUP_WARPS
        if leaders.get(group) != span.warp:
            continue
        if span.does == "compute":
            kind, text = (EXP2, "computes exp2") if span.powers else (COMPUTE, "computes")
        elif span.does == "wait":
            kind, text = WAITS.get(span.of, (WAIT_COPY, f"waits for {span.of}"))
        else:
            continue
        add(bool(copies) + consumers.index(group), kind, span.start, span.end, text)
    for (group, array), start, end in _runs_of_products(line):
        # two warpgroups share the lane: each has a half of it
        number = consumers.index(group)
        text = f"compute {product_names[array]} of warpgroup {number + 1}"
        add(len(lanes) - 1 + number, numbers[product_names[array]], start, end, text)
    edge_cycles = 0.0
    for bubble in line.bubbles():
        edge_cycles += (bubble.end - bubble.start) * bubble.at_edge
        add(len(lanes) - 1 + len(consumers), BUBBLE, bubble.start, bubble.end, "idle")
    return {
        "cycles": line.cycles,
        "idle": line.idle_share,
        "edges": edge_cycles / line.cycles,
        "lanes": lanes,
        "consumers": len(consumers),
        "spans": np.rint(np.array(spans)).astype(np.int32),
        "words": words,
        "letters": [_letters(array) for array, *_ in copies],
        "tiles": _tiles(line, list(leaders.values())),
    }


def _letters(array) -> str:
    return array.partition("_")[0][:2]


def _tiles(line: Timeline, leaders) -> list[dict]:
    """Return names, cycles and a sentence of the tiles that can be followed; waits are from a cycle to a cycle."""
    numbers, found = Counter(), []
    for tile in copied_tiles(line, leaders):
        numbers[tile.array] += 1
        uses = [(leaders.index(use.warp) + 1, use) for use in tile.uses]
        found.append(
            {
                "name": f"{_letters(tile.array)} tile {numbers[tile.array]}",
                "copy": [round(tile.start), round(tile.end)],
                "uses": [[n, *map(round, (*use.waits, *use.multiplies, use.frees or -1))] for n, use in uses],
                "say": _tile_sentence(tile, [n for n, _ in uses]),
            }
        )
    return found


def _tile_sentence(tile, numbers) -> str:
    """Say when a tile lands, and what the warpgroups of these numbers do with it."""
    many, uses = len(numbers) > 1, tile.uses
    waits = [f"{use.waits[1] - use.waits[0]:,.0f}" for use in uses]
    frees = [f"{use.frees:,.0f}" for use in uses if use.frees is not None]
    does = [f"{'multiply' if many else 'multiplies'} from {join([f'{use.multiplies[0]:,.0f}' for use in uses])}"]
    if any(wait != "0" for wait in waits):
        does.insert(0, f"{'wait' if many else 'waits'} for {join(waits)} cycles")
    does.append(
        f"{'free' if many else 'frees'} its stage at {join(frees)}"
        if frees
        else f"{'need' if many else 'needs'} its stage to the end"
    )
    return f"lands at cycle {tile.end:,.0f}. Warpgroup{'s' * many} {join(list(map(str, numbers)))} {join(does)}."


def _copies(line: Timeline):
    """Return runs of copies of one array without a pause."""
    found = []
    for span in sorted((span for span in line.spans if span.does == "copy"), key=lambda span: span.start):
        if found and found[-1][0] == span.of and span.start <= found[-1][2]:
            found[-1][2] = span.end
        else:
            found.append([span.of, span.start, span.end])
    return found


def _runs_of_products(line: Timeline):
    """Return runs of a warpgroup's `wgmma` with one array, interleaved with those of other warpgroups."""
    latest, found = {}, []
    pause = 1.01 * max(span.end - span.start for span in line.products())
    for span in line.products():
        key, mine = (span.warp // WARPGROUP_WARPS, span.of), latest.get(span.warp)
        if mine and mine[0] == key and span.start <= mine[2] + pause:
            mine[2] = span.end
        else:
            latest[span.warp] = [key, span.start, span.end]
            found.append(latest[span.warp])
    return found


def _states(run, at) -> dict[str, str]:
    """Return what each lane does at an instant; an empty mapping once the run is done."""
    if at >= run["cycles"]:
        return {}
    tensor, words_by_lane, issuing = len(run["lanes"]) - 1, {}, set()
    for (lane, _, start, end), words in zip(run["spans"].tolist(), run["words"], strict=True):
        name = run["lanes"][min(lane, tensor)]
        if start <= at < end:
            before = words_by_lane.get(name)
            words_by_lane[name] = f"{before} and {words.removeprefix('compute ')}" if before else words
        elif at < start < at + ISSUE_CYCLES:
            issuing.add(name)
    default = {name: "issues wgmma" if name in issuing else "has ended" for name in run["lanes"]}
    return {name: words_by_lane.get(name, default[name]) for name in run["lanes"] if name != "copies"}


def _sentence(at, states) -> str:
    idle_runs = {name: of for name, of in states.items() if of and of["tensor cores"] == "idle"}
    busy_runs = [f"`{name}`" for name, of in states.items() if of and name not in idle_runs]
    done = [f"`{name}`" for name, of in states.items() if not of]
    parts = []
    if idle_runs:
        why = [f"`{name}` ({_warpgroups_text(of)})" for name, of in idle_runs.items()]
        parts.append(f"Tensor cores **idle** in {join(why)}")
    if busy_runs:
        parts.append(f"{'they' if idle_runs else 'Tensor cores'} work in {join(busy_runs)}")
    if done:
        parts.append(f"{join(done)} {'is' if len(done) == 1 else 'are'} done")
    return f"Cycle {at:,.0f}. {'; '.join(parts)}."


def _warpgroups_text(states) -> str:
    """Say what the warpgroups do; once if all do the same."""
    does = {who: what for who, what in states.items() if who != "tensor cores"}
    if len(set(does.values())) == 1 and len(does) > 1:
        return f"each warpgroup {next(iter(does.values()))}"
    return ", ".join(f"{who} {what}" for who, what in does.items())


# --- standing still --------------------------------------------------------------------------------


def draw_still(figure, data, step):
    """Draw all runs one below the other, and a line at the instant shown."""
    runs, longest = data["runs"], data["common"]["cycles"]
    stills.set_size_and_title(figure, data, step, 9.5, 0.5 + 1.15 * len(runs), fontsize=8, wrap=True)
    for axes, run in zip(figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0], runs, strict=True):
        lanes = len(run["lanes"])
        for lane, kind, start, end in unpack(run["spans"]).tolist():
            top, tall = _place(lane, lanes, run["consumers"])
            if kind in WAIT_COLOURS:
                axes.plot([start, end], [top + tall / 2] * 2, color=COLOURS[WAIT_COLOURS[kind]], linewidth=1)
                continue
            colour, alpha = STYLES.get(kind, ("hot", 1))
            style = {"facecolor": COLOURS[colour], "alpha": alpha}
            if kind == BUBBLE:
                style = {"facecolor": "none", "edgecolor": COLOURS["dim"], "hatch": "////", "linewidth": 0.6}
            axes.add_patch(Rectangle((start, top), end - start, tall, **style))
        axes.axvline(longest * step / INSTANTS, color=COLOURS["hot"], linewidth=1)
        axes.set(xlim=(0, longest), ylim=(lanes, -0.2))
        axes.set_yticks(np.arange(lanes) + 0.4, run["lanes"], fontsize=6)
        axes.set_title(
            f"{run['name']}: tensor cores idle {run['idle']:.0%}", fontsize=8, loc="left", color=COLOURS["fg"]
        )
        stills.hide_marks(axes, labelsize=6)
    axes.set_xlabel(f"cycles of one SM, modelled for an {data['common']['gpu']}", fontsize=7)


def _place(lane, lanes, consumers):
    """Return a lane's top and height: the last lane has a part per warpgroup, and a bubble covers all of it."""
    tall = 0.8
    part = lane - (lanes - 1)
    if part < 0 or part == consumers:
        return min(lane, lanes - 1), tall
    return lanes - 1 + tall * part / consumers, tall / consumers
