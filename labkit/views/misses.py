"""Misses of the first cache in several runs, stacked by array."""

from collections.abc import Mapping

import numpy as np

from labkit.loops import LoopTrace
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import check_trace, join

ARRAY_COLOURS = ("A", "B", "C")
BAR, EDGES = 0.34, 0.95  # height of a bar and of both edges, in inches
MAIN_SHARE = 0.3  # of a bar: arrays with more are named beside it


def misses(traces: Mapping[object, LoopTrace], title: str) -> View:
    """Draw L1 misses per 1,000 multiply-adds of several runs of one product, as bars stacked by array.

    Parameters
    ----------
    traces
        A name for each run, such as its order of loops, and its trace.
    title
        The message, in a sentence.
    """
    for trace in traces.values():
        check_trace("misses", trace, LoopTrace)
    counts = {str(name): misses_by_array(trace) for name, trace in traces.items()}
    totals = {name: sum(of_run.values()) for name, of_run in counts.items()}
    best, worst = (choose(totals, key=totals.__getitem__) for choose in (min, max))
    arrays = list(next(iter(counts.values())))

    def draw_content(axes):
        left = np.zeros(len(counts))
        for array, colour in zip(arrays, ARRAY_COLOURS):
            values = np.array([of_run[array] for of_run in counts.values()])
            axes.barh(list(counts), values, 0.68, left=left, color=COLOURS[colour])
            left += values
        for place, (total, of_run) in enumerate(zip(left, counts.values())):
            main = join([array for array, count in of_run.items() if count > MAIN_SHARE * total])
            text = f"{short_number(total)}, mostly of {main}"
            axes.annotate(text, (total, place), (5, 0), textcoords="offset points", va="center")
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.invert_yaxis()
        axes.set(xlim=(0, 1.3 * max(totals.values())), xlabel="L1 misses per 1,000 multiply-adds")

    height = EDGES + BAR * len(counts)
    data = {
        "say": f"The fewest misses per 1,000 multiply-adds: **{short_number(totals[best])}** with `{best}`; the most: "
        f"**{short_number(totals[worst])}** with `{worst}`.",
        "charts": chart.svgs(draw_content, height),
        "legend": [("■", colour, f"misses of {array}") for array, colour in zip(arrays, ARRAY_COLOURS)],
        "caption": f"Counted over whole runs in the cache model of {next(iter(traces.values())).cpu}.",
        "table": table(
            ["run", *arrays, "all"],
            [
                [name, *map(short_number, of_run.values()), short_number(totals[name])]
                for name, of_run in counts.items()
            ],
        ),
    }
    return View("chart", title, data, lambda figure, data, step: chart.draw(figure, "wide", draw_content, height))


def misses_by_array(trace: LoopTrace) -> dict[str, float]:
    """Return the L1 misses of each array per 1,000 multiply-adds, each of which counts as two FLOPs."""
    per_1000 = 2000 / max(trace.counters.flops, 1)
    return {info.name: per_1000 * sum(trace.served(info.name)[1:]) for info in trace.arrays}
