"""Each unit of a GPU as a roof of its own: the speed that it allows a kernel."""

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.forecast.roofline import time_bound
from labkit.machine.gpus import Gpu
from labkit.table import short_number
from labkit.trace import Trace
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import check_trace

SCALE = (0.5, 2000)  # TFLOP/s: the same for all kernels, so that pictures can be compared
BAR, EDGES = 0.42, 0.8  # height of a bar, and of both edges, in inches


def ceilings(trace: Trace, gpu: str | Gpu | None = None) -> View:
    """Draw the highest speed of a kernel that each unit of a GPU allows, if it is always busy.

    Parameters
    ----------
    trace
        A simulated launch with FLOPs.
    gpu
        GPU that runs it; the trace's if left out.
    """
    check_trace("ceilings", trace)
    flops = trace.counters.flops
    if not flops:
        raise ValueError("ceilings compares speeds in FLOP/s, and this launch makes no FLOPs.")
    bound = time_bound(trace, gpu)
    speeds = {unit: flops / time_ms / 1e9 if time_ms else None for unit, time_ms in bound.terms.items()}

    def draw_content(axes: Axes):
        _draw(axes, speeds, bound.limiter)

    height = EDGES + BAR * len(speeds)
    rows = [
        [unit, short_number(speed) if speed else "not used", f"{1000 * bound.terms[unit]:.3g}", bound.formulas[unit]]
        for unit, speed in speeds.items()
    ]
    data = {
        "say": _sentence(speeds, bound.limiter),
        "charts": chart.svgs(draw_content, height),
        "legend": [("■", "D", "the lowest ceiling"), ("■", "A", "other units, always busy")],
        "table": table(("unit", "allows, TFLOP/s", "least time, µs", "how it is computed"), rows),
    }

    def draw_still(figure, data, step):
        chart.draw(figure, "wide", draw_content, height)

    return View("chart", f"Ceilings: what each unit of the {bound.gpu} allows", data, draw_still)


def _sentence(speeds, limiter):
    text = f"`{limiter}` allows **{short_number(speeds[limiter])} TFLOP/s**, the least of all units"
    others = {unit: speed for unit, speed in speeds.items() if speed and unit != limiter}
    if not others:
        return f"{text}."
    second = min(others, key=lambda unit: others[unit])
    return f"{text}. The next is {second}, with {short_number(others[second])}."


def _draw(axes, speeds, limiter):
    left, right = SCALE
    axes.set(xscale="log", xlim=SCALE, ylim=(len(speeds) - 0.4, -0.6), xlabel="TFLOP/s that the unit allows")
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_yticks(range(len(speeds)), list(speeds))
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    for at, (unit, speed) in enumerate(speeds.items()):
        end = min(max(speed or left, left), right / 2)  # a higher ceiling leaves room for its number
        if speed:
            axes.barh(at, end - left, 0.6, left=left, color=COLOURS["D" if unit == limiter else "A"])
        text = short_number(speed) if speed else "not used"
        weight = "bold" if unit == limiter else "normal"
        axes.annotate(text, (end, at), (5, 0), textcoords="offset points", va="center", weight=weight)
