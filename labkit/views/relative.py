"""A chart of several quantities of a few runs, each relative to one run: what changes, and what does not."""

from collections.abc import Mapping

from labkit.table import short_number
from labkit.views import chart, records_figure
from labkit.views.base import View, table
from labkit.views.records_figure import Peak, Series
from labkit.views.wording import join


def relative(values: Mapping[str, Mapping[str, float]], baseline: str, *, title: str) -> View:
    """Draw bars for each quantity, as multiples of the baseline's; a line marks the baseline at 1.

    Parameters
    ----------
    values
        For each run, by name, its quantities by their names: the same ones in each.
    baseline
        Name of the run that the others are compared with.
    title
        The message, in a sentence.
    """
    if baseline not in values:
        raise ValueError(f"There is no {baseline!r} to compare with: choose one of {join(list(values))}.")
    quantities = list(values[baseline])
    for name, of_run in values.items():
        if list(of_run) != quantities:
            raise ValueError(f"{name} and {baseline} have different quantities: give each {join(quantities)}.")
    if zeros := [quantity for quantity, value in values[baseline].items() if not value]:
        raise ValueError(f"{baseline} has 0 {join(zeros)}, and nothing is a multiple of 0: leave these out.")
    runs = [name for name in values if name != baseline]
    ratios = {name: {q: values[name][q] / values[baseline][q] for q in quantities} for name in runs}
    picture = records_figure.RecordsChart(
        series=[Series(name, name, of_run, True) for name, of_run in ratios.items()],
        places=quantities,
        names=quantities,
        x="",
        y=f"relative to {baseline}",
        peak=Peak(1, baseline),
        is_line=False,
    )
    ends = [f"**{short_number(ratios[runs[-1]][q])}x** {q}" for q in quantities] if runs else []
    data = {
        "say": f"`{runs[-1]}` compared with `{baseline}`: {join(ends)}." if runs else f"`{baseline}` alone.",
        "charts": chart.svgs(picture, picture.heights),
        "legend": [("■", "A", "value"), ("―", "fg", f"{baseline}: 1")],
        "table": table(
            ["quantity", *values],
            [[q, *(short_number(of_run[q]) for of_run in values.values())] for q in quantities],
        ),
    }
    return View("chart", title, data, lambda figure, data, step: chart.draw(figure, "wide", picture, picture.heights))
