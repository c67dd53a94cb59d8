"""A chart of verdicts: how many claims have each, and in which part of a book."""

from collections.abc import Mapping

from labkit.views import chart, records_figure
from labkit.views.base import View, table
from labkit.views.records_figure import Series
from labkit.views.wording import join


def verdicts(counts: Mapping[str, Mapping[str, int]], *, title: str) -> View:
    """Draw a bar for each verdict: the number of claims that have it; the rows behind it have the parts.

    Parameters
    ----------
    counts
        For each part, by name, the number of claims by verdict: the same verdicts in each.
    title
        The message, in a sentence.
    """
    kinds = list(dict.fromkeys(verdict for of_part in counts.values() for verdict in of_part))
    if not kinds:
        raise ValueError("There are no verdicts to count: give the number of claims by verdict, for each part.")
    for part, of_part in counts.items():
        if list(of_part) != kinds:
            raise ValueError(f"{part} has other verdicts than the first part: give each {join(kinds)}.")
    totals = {verdict: sum(of_part[verdict] for of_part in counts.values()) for verdict in kinds}
    picture = records_figure.RecordsChart(
        series=[Series("claims", "claims", totals, True)],
        places=kinds,
        names=kinds,
        x="",
        y="number with this verdict",
        peak=None,
        is_line=False,
    )
    rows = [
        [verdict, *(str(of_part[verdict]) for of_part in counts.values()), str(totals[verdict])] for verdict in kinds
    ]
    data = {
        "say": f"Of {sum(totals.values())} claims, {join([f'**{totals[verdict]}** {verdict}' for verdict in kinds])}.",
        "charts": chart.svgs(picture, picture.heights),
        "legend": [],
        "table": table(["verdict", *counts, "all"], rows),
    }
    return View("chart", title, data, lambda figure, data, step: chart.draw(figure, "wide", picture, picture.heights))
