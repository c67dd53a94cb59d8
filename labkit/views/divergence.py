"""Divergence: which lanes of a warp take part in each of its loads and stores."""

from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import block_name, check_traces, join, recorded_block

MOST_STEPS = 400


def divergence(runs: Mapping[str, Trace]) -> View:
    """Step through the global loads and stores of each warp of a block: lanes across, instructions down.

    Parameters
    ----------
    runs
        Runs of kernels with blocks of one size, by the name to show; the first recorded block of each is drawn.
    """
    check_traces("divergence", runs)
    sides = [_side(name, trace) for name, trace in runs.items()]
    warps = [len(side["by_warp"]) for side in sides]
    if len(set(warps)) > 1:
        raise ValueError(f"divergence compares blocks of one size, not of {join([str(n) for n in warps])} warps.")
    steps = []  # (warp, instructions that it has made)
    for warp in range(warps[0]):
        steps += [(warp, done) for done in range(1, 1 + max(len(side["by_warp"][warp]) for side in sides))]
    steps = steps[:MOST_STEPS]
    values = [[n for side in sides for n in _counts(side, warp, done)] for warp, done in steps]
    labels = [f"{what}, {name}" for name in runs for what in ("instructions so far", "lanes idle in them")]
    block = recorded_block(next(iter(runs.values())))[0]
    data = {
        "say": [_sentence(sides, warp, done) for warp, done in steps],
        "start": sum(warp == 0 for warp, _ in steps) - 1,  # warp 0 at its end
        "steps": steps,
        "sides": [
            {
                "name": side["name"],
                "texts": [[text for text, _, _ in instructions] for instructions in side["by_warp"]],
                "stores": [[is_store for _, is_store, _ in instructions] for instructions in side["by_warp"]],
                "lanes": [pack(np.array([lanes for _, _, lanes in made])) for made in side["by_warp"]],
            }
            for side in sides
        ],
        "most": max(len(instructions) for side in sides for instructions in side["by_warp"]),
        **stats_by_step(["warp", "step"], [list(step) for step in steps], labels, values),
    }
    return View("divergence", f"Divergence: the warps of block {block_name(block)}", data, draw_still)


def _side(name, trace):
    """Return for each warp its instructions: text, whether it stores, and the lanes that take part."""
    _, rows = recorded_block(trace)
    samples = trace.samples
    by_warp: list = [[] for _ in range(int(samples.warp[rows].max()) + 1)]
    for row in rows[samples.site[rows] >= 0]:  # others are barriers
        site = trace.sites[samples.site[row]].site
        if site.space == "global":
            verb = "store" if site.kind == "store" else "load"
            text = f"line {site.line}: {verb} {site.text}"
            by_warp[samples.warp[row]].append((text, site.kind == "store", samples.index[row] >= 0))
    return {"name": name, "by_warp": by_warp}


def _counts(side, warp, done):
    """Return the instructions that a warp has made, and the lanes that were idle in them."""
    lanes = [lanes for _, _, lanes in side["by_warp"][warp][:done]]
    return len(lanes), sum(WARP_LANES - int(mask.sum()) for mask in lanes)


def _sentence(sides, warp, done):
    parts = []
    for side in sides:
        instructions = side["by_warp"][warp]
        if done > len(instructions):
            parts.append(f"{side['name']} has **finished after {len(instructions)}**")
        else:
            lanes = int(instructions[done - 1][2].sum())
            idle = f", {WARP_LANES - lanes} idle" if lanes < WARP_LANES else ""
            parts.append(f"{side['name']}: {lanes} lanes take part{idle}")
    return f"Warp {warp}, instruction {done}. {'; '.join(parts)}."


def draw_still(figure, data, step):
    """Draw the instructions that the step's warp has made, in each run."""
    stills.set_size_and_title(figure, data, step, 9.5, 0.9 + 0.32 * data["most"])
    warp, done = data["steps"][step]
    for axes, side in zip(np.ravel(figure.subplots(1, len(data["sides"]))), data["sides"], strict=True):
        for row, mask in enumerate(unpack(side["lanes"][warp])[:done]):
            colour = COLOURS["C" if side["stores"][warp][row] else "A"]
            for lane, is_active in enumerate(mask):
                cell = Rectangle((lane, row), 0.85, 0.55, facecolor=colour, edgecolor=COLOURS["dim"], lw=0.2)
                if not is_active:
                    cell.set(facecolor="white", hatch="////")
                axes.add_patch(cell)
            axes.text(0, row - 0.02, side["texts"][warp][row], fontsize=6, va="bottom", color=COLOURS["fg"])
        axes.set(xlim=(0, WARP_LANES), ylim=(data["most"], -0.4))
        axes.set_title(side["name"], fontsize=9, loc="left")
        stills.hide_marks(axes, labelleft=False, labelbottom=False)
