"""Arithmetic intensity over the size of a problem: formulas as lines, counts from runs as dots, a GPU's ridge point."""

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from labkit.forecast import roofline
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.records_figure import STEP_STYLES
from labkit.views.wording import join

BEYOND = 16  # lines go on to so many times the largest size that was counted


def intensities(
    title: str,
    counted: Mapping[str, Mapping[int, float]],
    formulas: Mapping[str, Callable[[float], float]],
    gpu: str = "H100 SXM",
    precision: str = "float32",
    size: str = "n",
) -> View:
    """Draw FLOP/byte of routines over the size of their problem.

    Parameters
    ----------
    title
        The message, in a sentence.
    counted
        For each routine the FLOP/byte of runs, by size.
    formulas
        For each routine its FLOP/byte as a function of the size, if each byte moves once.
    gpu, precision
        Whose ridge point is drawn.
    size
        The letter of the size.
    """
    sizes = sorted({n for counts in counted.values() for n in counts})
    if not sizes or counted.keys() != formulas.keys():
        raise ValueError("intensities takes counts and a formula for each routine, by the same names.")
    ridge = roofline.ridge_point(gpu, precision)

    def draw_content(axes: Axes):
        _draw(
            axes, counted, formulas, sizes, size, ridge, f"ridge of {gpu}, {precision}: {short_number(ridge)} FLOP/byte"
        )

    data = {
        "say": _sentence(counted, size, sizes[-1], ridge, gpu),
        "charts": chart.svgs(draw_content),
        "legend": [("―", "dim", "formula: each byte moves once"), ("●", "dim", "counted in a run of the simulator")],
        "table": table(
            [size, *(f"{name}, FLOP/byte" for name in counted)],
            [
                [f"{n:,}", *(short_number(counts[n]) if n in counts else "" for counts in counted.values())]
                for n in sizes
            ],
        ),
    }
    return View("chart", title, data, chart.still_function(draw_content))


def _sentence(counted, size, n, ridge, gpu):
    values = {name: counts[n] for name, counts in counted.items() if n in counts}
    reached = join([f"`{name}` makes **{short_number(value)}**" for name, value in values.items()])
    beyond = [f"`{name}`" for name, value in values.items() if value >= ridge]
    if len(values) == 1:
        verdict = "It reaches" if beyond else "It does not reach"
    elif 0 < len(beyond) < len(values):
        verdict = f"Only {join(beyond)} {'reach' if len(beyond) > 1 else 'reaches'}"
    else:
        verdict = "All reach" if beyond else "None reaches"
    ridge = f"the ridge of the {gpu}, {short_number(ridge)} FLOP/byte"
    return f"At {size} = {n:,}, {reached} FLOP/byte. {verdict} {ridge}."


def _draw(axes, counted, formulas, sizes, size, ridge, ridge_name):
    chart.set_logarithmic(axes)
    last = BEYOND * sizes[-1]
    n = np.geomspace(sizes[0], last, 60)
    for (name, counts), (marker, _, colour) in zip(counted.items(), STEP_STYLES):
        line = [formulas[name](float(at)) for at in n]
        axes.plot(n, line, color=COLOURS[colour], linewidth=1.6)
        axes.plot(counts.keys(), counts.values(), marker, color=COLOURS[colour], ms=6.5)
        axes.annotate(name, (last, line[-1]), (6, 0), textcoords="offset points", va="center", weight="bold")
    axes.axhline(ridge, color=COLOURS["fg"], linewidth=1.8, linestyle=(0, (5, 3)))
    middle = np.sqrt(sizes[0] * last)
    crosses_late = any(formula(middle) < ridge <= formula(float(last)) for formula in formulas.values())
    at, offset, side = (sizes[0], 5, "left") if crosses_late else (last, -13, "right")  # away from lines that cross
    axes.annotate(ridge_name, (at, ridge), (0, offset), textcoords="offset points", ha=side, weight="bold")
    ticks = [sizes[0] * 4**k for k in range(int(np.log(last / sizes[0]) / np.log(4)) + 1)]
    axes.set_xticks(ticks, [f"{at:,}" for at in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(sizes[0] / 1.3, last * 2.2)
    axes.set(xlabel=size, ylabel="FLOP / byte of DRAM")
