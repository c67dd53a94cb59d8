"""A matrix under the blocks that compute it: which threads have an output, and which are outside."""

from collections.abc import Mapping

from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, stats_by_step
from labkit.views.wording import check_trace

LABELS = ["threads", "outputs", "threads with an output"]


def ragged(traces: Mapping[str, Trace], array: str, *, start: str | None = None) -> View:
    """Lay each run's blocks over the matrix that they compute, a thread for each element.

    Parameters
    ----------
    traces
        Runs by their names, each a step: launches in 2D, in which x counts columns.
    array
        The matrix that a launch computes.
    start
        Name of the run that is shown first; the first one if left out.
    """
    if not traces:
        raise ValueError("ragged shows the blocks of a launch: give one, or more.")
    if start is not None and start not in traces:
        raise ValueError(f"There is no run {start!r} to start with: choose one of {', '.join(traces)}.")
    says, steps, values = [], [], []
    for name, trace in traces.items():
        check_trace("ragged", trace)
        rows, columns = _matrix(trace, array)
        threads = trace.grid[0] * trace.block[0] * trace.grid[1] * trace.block[1]
        covered = min(rows, trace.grid[1] * trace.block[1]) * min(columns, trace.grid[0] * trace.block[0])
        share = f"{covered / threads:.0%}"
        outside = "No thread is" if covered == threads else f"{threads - covered:,} of {threads:,} threads are"
        says.append(f"{array} of {name}: **{share}** of the threads have an output. {outside} outside of {array}.")
        steps.append({"size": [rows, columns], "grid": trace.grid[1::-1], "block": trace.block[1::-1]})
        values.append([threads, covered, share])
    data = {
        "say": says,
        "counter": list(traces),
        "array": array,
        "start": 0 if start is None else list(traces).index(start),
        "launches": steps,
        **stats_by_step(["run"], [[name] for name in traces], LABELS, values),
    }
    return View("ragged", f"Ragged: blocks of `{trace.kernel}` over {array}", data, draw_still)


def _matrix(trace: Trace, array: str) -> tuple[int, ...]:
    shapes = {info.name: info.shape for info in trace.arrays if info.space == "global" and len(info.shape) == 2}
    if array not in shapes:
        raise ValueError(f"{trace.kernel} has no matrix {array!r}: choose one of {', '.join(shapes) or 'none'}.")
    if trace.grid[2] * trace.block[2] > 1:
        raise ValueError(f"ragged shows launches in 2D, and {trace.kernel} was launched in 3D.")
    return shapes[array]


def draw_still(figure, data, step):
    """Draw the matrix, the outlines of its blocks, and the threads outside hatched."""
    stills.set_size_and_title(figure, data, step, 5, 4)
    axes = figure.add_subplot()
    launch = data["launches"][step]
    (rows, columns), (down, across), (tall, wide) = launch["size"], launch["grid"], launch["block"]
    style = {"facecolor": COLOURS["cell"], "edgecolor": COLOURS["dim"], "hatch": "////", "linewidth": 0}
    axes.add_patch(Rectangle((0, 0), across * wide, down * tall, **style))
    axes.add_patch(Rectangle((0, 0), columns, rows, facecolor=stills.tint("C", 0.75)))
    for number in range(down * across):
        corner = number % across * wide, number // across * tall
        axes.add_patch(Rectangle(corner, wide, tall, fill=False, edgecolor=COLOURS["ink"], linewidth=1))
    reach = max(max(each["grid"][axis] * each["block"][axis] for axis in (0, 1)) for each in data["launches"])
    axes.set(xlim=(-0.5, reach + 0.5), ylim=(reach + 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
