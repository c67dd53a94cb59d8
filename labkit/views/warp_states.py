"""What the warps of each step do in a cycle: issue, or wait for one of several things, as ncu measured it."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from labkit import results
from labkit.results import Results
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.records import caption_text
from labkit.views.wording import join

# A state of the record: its words, the colour of its bar, hatching, and its sign in the legend.
STATES = {
    "issue an instruction": ("issue an instruction", "A", "", "■"),
    "ready, another warp issues": ("could issue, but another warp does", "A", "////", "▨"),
    "arithmetic units": ("wait for arithmetic units", "C", "", "■"),
    "shared memory": ("for shared memory", "D", "", "■"),
    "global memory": ("for global memory", "B", "", "■"),
    "a barrier or wgmma_wait": ("at a barrier", "ink", "....", "▦"),
    "an earlier instruction": ("for a result, an address or a branch", "dim", "\\\\\\\\", "▧"),
}
UNITS = {"fp32": "multiply-add units", "tensor": "tensor cores"}
OTHER_WORDS = {"tensor": {"a barrier or wgmma_wait": "at a barrier, or for wgmma"}}  # kernels in float32 have no wgmma
BUSY = "busy"
ROW, EDGES = 0.36, 0.95  # height of a step, and of both edges, in inches
LEAST_NAMED = 9  # percent of a part that has its figure inside


def warp_states(ladder: str, title: str, steps: Sequence[str], record: str | Results = "stalls") -> View:
    """Draw a bar for each step: of the cycles of all its resident warps, which share goes to what.

    Parameters
    ----------
    ladder
        "fp32" or "tensor": a ladder of GEMMs.
    title
        The message, in a sentence.
    steps
        Steps of the ladder, from top to bottom.
    record
        Name of a record of `labkit bench stalls`, or the record.
    """
    loaded = results.as_results(record)
    rows = {step: loaded.select(ladder=ladder, step=step) for step in steps}
    if missing := [step for step, found in rows.items() if not found]:
        raise ValueError(f"The record {loaded.operation} has no {join(missing)} of the ladder {ladder}: leave it out.")
    shares = {step: {row["state"]: row["percent"] for row in found} for step, found in rows.items()}
    height = ROW * len(steps) + EDGES

    def draw_content(axes: Axes):
        _draw(axes, shares, UNITS[ladder])

    last = steps[-1]
    waits = [state for state in STATES if state not in ("issue an instruction", "ready, another warp issues")]
    longest = max(waits, key=lambda state: shares[last][state])
    names = {state: words for state, (words, *_) in STATES.items()} | OTHER_WORDS.get(ladder, {})
    data = {
        "say": f"In `{last}` the {UNITS[ladder]} are busy in **{shares[last][BUSY]:.0f}%** of the cycles. Its warps "
        f"wait most {names[longest].removeprefix('wait ')}: **{shares[last][longest]:.0f}%** of their time.",
        "charts": chart.svgs(draw_content, height),
        "legend": [(sign, colour, names[state]) for state, (_, colour, _, sign) in STATES.items()],
        "caption": "Shares of the cycles of all resident warps, by Nsight Compute. "
        + caption_text(loaded, [row for found in rows.values() for row in found], [], [], []),
        "table": table(
            ["step", *names.values(), f"{UNITS[ladder]} busy"],
            [[step, *(f"{of[state]:.1f}%" for state in STATES), f"{of[BUSY]:.1f}%"] for step, of in shares.items()],
        ),
    }
    return View("chart", title, data, lambda figure, data, step: chart.draw(figure, "wide", draw_content, height))


def _draw(axes, shares, unit):
    for place, of in enumerate(shares.values()):
        left = 0.0
        for state, (_, colour, hatch, _) in STATES.items():
            share = of[state]
            fill = COLOURS["bg"] if hatch else COLOURS[colour]
            axes.barh(place, share, 0.62, left, color=fill, edgecolor=COLOURS[colour], hatch=hatch, linewidth=0.8)
            if share >= LEAST_NAMED:
                box = {"boxstyle": "round,pad=0.15", "facecolor": COLOURS["bg"], "edgecolor": "none"}
                middle = left + share / 2
                axes.text(middle, place, f"{share:.0f}", ha="center", va="center", fontsize=8.5, bbox=box)
            left += share
        axes.text(102, place, f"{of[BUSY]:.0f}%", va="center", fontweight="bold")
    axes.text(102, -0.75, f"{unit} busy", va="center", ha="left" if _is_wide(axes) else "right", color=COLOURS["dim"])
    axes.set_yticks(range(len(shares)), list(shares))
    axes.set(xlim=(0, 118 if _is_wide(axes) else 114), ylim=(len(shares) - 0.5, -1.1))
    axes.set_xticks((0, 25, 50, 75, 100), ["0", "25", "50", "75", "100%"])
    axes.set_xlabel("share of the cycles of resident warps")
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)


def _is_wide(axes):
    return axes.figure.get_figwidth() > 6
