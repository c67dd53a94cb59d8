"""The outputs of one lane in several kernels, side by side, with the values of A and B that they need."""

from collections.abc import Mapping

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import View, table, unpack
from labkit.views.outputs import outputs
from labkit.views.wording import check_traces, join


def compare_outputs(runs: Mapping[str, Trace]) -> View:
    """Step through the lanes of warp 0 in several kernels: which outputs each computes, and what it loads for them.

    Parameters
    ----------
    runs
        Runs by the names of their kernels, each with a recorded block, of kernels that write a matrix. Names are as
        long as a panel is wide.
    """
    check_traces("compare_outputs", runs)
    panels = {name: _panel(name, outputs(trace), trace) for name, trace in runs.items()}
    lanes = min(len(panel["counts"]) for panel in panels.values())
    data = {
        "say": [_sentence(lane, panels) for lane in range(lanes)],
        "counter": [f"lane {lane}" for lane in range(lanes)],
        "panels": list(panels.values()),
        "most": max(panel["loads"] for panel in panels.values()),
        "table": table(
            ["kernel", "outputs of the block", "of a thread", "rows", "columns", "shared loads per multiply-add"],
            [
                [name, " x ".join(map(str, panel["shape"])), *panel["counts"][0], f"{panel['loads']:.4g}"]
                for name, panel in panels.items()
            ],
        ),
    }
    return View("compare_outputs", "One thread's outputs, and the values that it loads for them", data, draw_still)


def _panel(name, view, trace):
    owner = unpack(view.data["owner"]).astype(int)
    counts = []
    for lane in range(len(view.data["say"])):
        rows, columns = (owner == lane).nonzero()
        counts.append([len(rows), len(set(rows.tolist())), len(set(columns.tolist()))])
    return {
        "name": name,
        "owner": view.data["owner"],
        "shape": list(owner.shape),
        "counts": counts,
        "loads": trace.counters.shared_loads / (trace.counters.flops / 2),
    }


def _sentence(lane, panels):
    parts = []
    for name, panel in panels.items():
        count, rows, columns = panel["counts"][lane]
        parts.append(f"**{rows} + {columns}** for {count} in `{name}`")
    return f"Thread {lane}, for one k, loads and multiply-adds: {join(parts)}."


def draw_still(figure, data, step):
    """Draw the panels with one lane's outputs."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.8)
    all_axes = figure.subplots(1, len(data["panels"]), squeeze=False)[0]
    for axes, panel in zip(all_axes, data["panels"], strict=True):
        owner = unpack(panel["owner"]).astype(int)
        cells = stills.tint("C", 0.15 + 0.35 * (owner < WARP_LANES))
        mine = owner == step
        cells[mine.any(1)] = 0.5 * cells[mine.any(1)] + 0.5 * stills.tint("A", 0.35)
        cells[:, mine.any(0)] = 0.5 * cells[:, mine.any(0)] + 0.5 * stills.tint("B", 0.35)
        cells[mine] = stills.rgb("hot")
        stills.show_cells(axes, cells, f"{panel['name']}: {panel['loads']:.4g} loads per multiply-add")
