"""Predicted time and workspace of every algorithm for a convolution, and which is first within a limit."""

from collections.abc import Sequence

from matplotlib.ticker import NullFormatter

from labkit import conv
from labkit.conv.interface.choices import limit_workspace
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.winners import MB, ladder_style, limit_name

SMALLEST_MB = 1.0  # below it, workspace is drawn as this much


def workspace_limits(
    problem: conv.Forward, limits_mb: Sequence[int | None] = (0, 1, 16, 64, 256, 512, 1024, None)
) -> View:
    """Step through limits of workspace: each algorithm by its workspace and predicted time, and the first within it.

    An algorithm over the limit stays in the picture, pale, at its workspace and predicted time.
    """
    unlimited = conv.heuristic(problem)
    steps, rows = [], []
    for limit_mb in limits_mb:
        ranking = unlimited if limit_mb is None else limit_workspace(unlimited, limit_mb * MB)
        steps.append(dots := _dots(ranking, unlimited))
        first = next(dot for dot in dots if dot["fits"])
        cells = first["name"], f"{first['workspace_mb']:,.1f}", f"{first['time_ms']:.3g}"
        rows.append([limit_name(limit_mb), *cells, sum(dot["fits"] for dot in dots)])
    fastest_ms = min(dot["time_ms"] for dot in steps[-1])
    data = {
        "say": [_sentence(row[0], dots, fastest_ms) for row, dots in zip(rows, steps)],
        "counter": [limit_name(limit_mb) for limit_mb in limits_mb],
        "problem": str(problem),
        "limits": list(limits_mb),
        "steps": steps,
        "looks": {dot["name"].partition("/")[0]: ladder_style(dot["name"].partition("/")[0]) for dot in steps[-1]},
        "smallest_mb": SMALLEST_MB,
        "table": table(["limit", "ranked first", "its workspace, MB", "predicted ms", "algorithms within"], rows),
    }
    return View(
        "workspace_limits", "Memory for time: which algorithm is first within a limit of workspace", data, draw_still
    )


def _dots(ranking, unlimited):
    """Return the algorithms that apply: those within the limit first, from fastest to slowest."""
    within = {row.algorithm: row for row in ranking if not row.reason}
    over = [row for row in unlimited if not row.reason and row.algorithm not in within]
    return [
        {
            "name": str(row.algorithm),
            "workspace_mb": row.workspace_bytes / MB,
            "time_ms": row.time_ms,
            "fits": row.algorithm in within,
        }
        for row in (*within.values(), *over)
    ]


def _sentence(limit, dots, fastest_ms) -> str:
    first, count = dots[0], sum(dot["fits"] for dot in dots)
    slower = first["time_ms"] / fastest_ms
    cost = "the best there is" if slower < 1.005 else f"**{slower:.1f}x** the time of the best with any workspace"
    return (
        f"{limit[0].upper()}{limit[1:]}: {count} of {len(dots)} algorithms fit, and `{first['name']}` is ranked first, "
        f"with **{first['time_ms']:.3g} ms**, {cost}."
    )


def draw_still(figure, data, step):
    """Draw the algorithms of one step."""
    stills.set_size_and_title(figure, data, step, 8.4, 3.8, wrap=True)
    axes = figure.subplots()
    dots, limit = data["steps"][step], data["limits"][step]
    for number, dot in enumerate(dots):
        colour = data["looks"][dot["name"].partition("/")[0]][0]
        place = max(dot["workspace_mb"], SMALLEST_MB), dot["time_ms"]
        shade = {"color": COLOURS[colour], "alpha": 1 if dot["fits"] else 0.25, "markersize": 9 if number == 0 else 6}
        axes.loglog(*place, "o", **shade)
        nudge = 3 if number % 2 else -9
        axes.annotate(dot["name"], place, xytext=(6, nudge), textcoords="offset points", fontsize=7)
    if limit is not None:
        axes.axvline(max(limit, SMALLEST_MB), color=COLOURS["fg"], linewidth=1)
    axes.set_xlabel("workspace, MB (1 or less at the left)", fontsize=8)
    axes.set_ylabel("predicted ms", fontsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    stills.hide_top_and_right(axes)
