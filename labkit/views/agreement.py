"""Counters: the simulator's predictions compared with a GPU's own counters."""

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import EngFormatter

from labkit.table import count_text
from labkit.views import chart
from labkit.views.base import COLOURS, View, table

# How a row came out: its mark in the chart and in the legend, its colour, and what it says.
VERDICTS = {
    "exact": ("o", "○", "A", "equal"),
    "held": ("D", "◇", "C", "within its bound"),
    "open": ("X", "✕", "hot", "left open"),
    "missed": ("v", "▼", "hot", "beyond its bound"),
}
LABELS = ("kernel", "problem", "counter")
RATE_SUFFIX = "_rate"  # counters that are shares: only the table has them


def agreement(rows: Sequence[dict[str, Any]], gpu: str) -> View:
    """Compare each counter of each launch: predicted, times the factor of the machine code, against measured.

    Parameters
    ----------
    rows
        As `labkit bench counters` records them.
    gpu
        The name of the GPU that measured.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if not rows:
        raise ValueError("agreement needs the rows of `python -m labkit bench counters`; load them with labkit.results")
    points = [row for row in rows if not row["counter"].endswith(RATE_SUFFIX)]
    verdicts_present = [kind for kind in VERDICTS if any(verdict(row) == kind for row in points)]

    def draw_points(axes):
        chart.set_logarithmic(axes)
        expected = [_expected(row) for row in points if _expected(row)]
        ends = (min(expected) / 3, max(expected) * 3)
        axes.plot(ends, ends, color=COLOURS["dim"], linewidth=1)
        for kind in verdicts_present:
            mark, _, colour, _ = VERDICTS[kind]
            of_verdict = [row for row in points if verdict(row) == kind]
            xs, ys = [_expected(row) for row in of_verdict], [row["measured"] for row in of_verdict]
            axes.plot(xs, ys, mark, ms=7, mfc="none", mec=COLOURS[colour], mew=1.5)
        axes.set(xlim=ends, ylim=ends)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(EngFormatter(sep=""))  # 1k, 1M, 1G
        axes.set(xlabel="predicted × factor of the machine code", ylabel=f"measured on {gpu}")

    data = {
        "say": _sentence(rows),
        "charts": chart.svgs(draw_points),
        "legend": [(sign, colour, text) for _, sign, colour, text in map(VERDICTS.__getitem__, verdicts_present)],
        "table": table(
            ("launch", *LABELS[1:], "expected", "measured", ""),
            [
                [*map(row.get, LABELS), _text(_expected(row)), _text(row["measured"]), VERDICTS[verdict(row)][-1]]
                for row in rows
            ],
        ),
    }
    return View("chart", f"Counters: predicted, and measured on {gpu}", data, chart.still_function(draw_points))


def verdict(row: dict[str, Any]) -> str:
    """Name the verdict on a row: "exact", "held", "open" or "missed"."""
    if row["held"] is None:
        return "open"
    if row["agreement"] == 1:
        return "exact"
    return "held" if row["held"] else "missed"


def _expected(row):
    return row["predicted"] * row["sass_factor"]


def _sentence(rows):
    verdicts = [verdict(row) for row in rows]
    launches = len({(row["kernel"], row["problem"]) for row in rows})
    text = f"**{len(rows)}** counters of {launches} launches: **{verdicts.count('exact')}** are equal, "
    text += f"{verdicts.count('held')} are within their bound, {verdicts.count('open')} are left open"
    missed = verdicts.count("missed")
    text += f", {missed} are beyond their bound." if missed else "."
    rates = sum(row["counter"].endswith(RATE_SUFFIX) for row in rows)
    return text + (f" The table also has {count_text(rates, 'hit rate')}, which the chart leaves out." if rates else "")


def _text(value):
    return f"{value:,.0f}" if value > 1 or value == int(value) else f"{value:.1%}"
