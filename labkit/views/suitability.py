"""Which families of algorithms compute a convolution, and why the others do not."""

from collections.abc import Mapping

from matplotlib.patches import Rectangle

from labkit import conv
from labkit.formats import FP32
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.winners import ladder_style
from labkit.views.wording import join


def suitability(problems: Mapping[str, conv.Forward | tuple[conv.Forward, str]]) -> View:
    """Step through problems: which families have an algorithm for each, and the reason of each algorithm that has none.

    Parameters
    ----------
    problems
        Problems by what is special about them; with a format, or in float32.
    """
    rankings = {name: _rank(problem) for name, problem in problems.items()}
    families = list(dict.fromkeys(_family(row) for ranking in rankings.values() for row in ranking))
    cells = [[_cell(ranking, family) for family in families] for ranking in rankings.values()]
    data = {
        "say": [_sentence(name, families, row) for name, row in zip(rankings, cells)],
        "counter": list(rankings),
        "names": list(rankings),
        "families": families,
        "looks": {family: ladder_style(family) for family in families},
        "cells": cells,
        "table": table(
            ["problem", *families],
            [[name, *("yes" if cell["applies"] else "no" for cell in row)] for name, row in zip(rankings, cells)],
        ),
    }
    return View("suitability", "Which families apply?", data, draw_still)


def _rank(problem):
    problem, format = problem if isinstance(problem, tuple) else (problem, FP32.name)
    return conv.heuristic(problem, format)


def _family(row) -> str:
    return str(row.algorithm).partition("/")[0]


def _cell(ranking, family):
    """Return whether one of a family's algorithms applies, and for each its predicted time or the reason against it."""
    rows = [row for row in ranking if _family(row) == family]
    lines = [[str(row.algorithm), row.reason or f"applies, predicted {row.time_ms:.3g} ms"] for row in rows]
    return {"applies": any(not row.reason for row in rows), "lines": lines}


def _sentence(name, families, row) -> str:
    taking = [f"`{family}`" for family, cell in zip(families, row) if cell["applies"]]
    refusing = [f"`{family}`" for family, cell in zip(families, row) if not cell["applies"]]
    if not taking:
        return f"**{name}**: no algorithm here applies."
    text = f"**{name}**: {join(taking)} {'applies' if len(taking) == 1 else 'apply'}"
    return f"{text}; {join(refusing)} {'does' if len(refusing) == 1 else 'do'} not." if refusing else f"{text}."


def draw_still(figure, data, step):
    """Draw all cells, and mark the row of the step."""
    stills.set_size_and_title(figure, data, step, 8.4, 4.2)
    axes = figure.subplots()
    for y, row in enumerate(data["cells"]):
        for x, cell in enumerate(row):
            colour = data["looks"][data["families"][x]][0] if cell["applies"] else "cell"
            square = {"facecolor": COLOURS[colour], "alpha": 0.4, "linewidth": 0}
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, **square))
            stills.write(axes, x, y, "yes" if cell["applies"] else "–", fontsize=8, color=COLOURS["fg"])
    axes.set_xlim(-0.5, len(data["families"]) - 0.5)
    axes.set_ylim(len(data["names"]) - 0.5, -0.5)
    axes.set_xticks(range(len(data["families"])), data["families"], fontsize=8)
    axes.set_yticks(range(len(data["names"])), data["names"], fontsize=8)
    axes.get_yticklabels()[step].set_weight("bold")
    stills.hide_marks(axes)
