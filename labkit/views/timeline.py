"""Ideas over the years in which they were published."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from labkit.views import chart
from labkit.views.base import COLOURS, View, table

KINDS = {"arithmetic": ("o", "A"), "memory": ("s", "C"), "hardware": ("D", "D")}  # marker and colour of each
ROW, EDGES = 0.16, 0.7  # height of a line, and of both edges, in inches


@dataclass(frozen=True)
class Idea:
    """What someone published: the year, the authors, the title, the idea in a phrase, its kind and its chapter."""

    year: int
    authors: str
    title: str
    idea: str
    kind: str
    chapter: str


def timeline(title: str, ideas: Sequence[Idea]) -> View:
    """Draw ideas at their years, a line for each.

    Parameters
    ----------
    title
        The message, in a sentence.
    ideas
        In the order of their years; `kind` is one of `KINDS`.
    """
    if not ideas or any(idea.kind not in KINDS for idea in ideas):
        raise ValueError(f"timeline takes ideas of the kinds {', '.join(KINDS)}.")
    ideas = sorted(ideas, key=lambda idea: idea.year)

    def draw_content(axes: Axes):
        _draw(axes, ideas)

    height = EDGES + ROW * len(ideas)
    count = {kind: sum(idea.kind == kind for idea in ideas) for kind in KINDS}
    recent = ideas[-1].year - 11
    since = sum(idea.year >= recent for idea in ideas)
    data = {
        "say": f"**{len(ideas)} ideas** from {ideas[0].year} to {ideas[-1].year}: {len(ideas) - since} before "
        f"{recent}, {since} since then.",
        "charts": chart.svgs(draw_content, height),
        "legend": [
            ("●", "A", f"arithmetic: fewer or better operations ({count['arithmetic']})"),
            ("■", "C", f"memory: fewer bytes, or better timing ({count['memory']})"),
            ("◆", "D", f"hardware ({count['hardware']})"),
        ],
        "table": table(
            ["year", "authors", "title", "idea", "chapter"],
            [[str(idea.year), idea.authors, idea.title, idea.idea, idea.chapter] for idea in ideas],
        ),
    }

    def draw_still(figure, data, step):
        chart.draw(figure, "wide", draw_content, height)

    return View("chart", title, data, draw_still)


def _draw(axes, ideas):
    first, last = ideas[0].year, ideas[-1].year
    middle = (first + last) / 2
    is_narrow = axes.figure.get_size_inches()[0] < 6
    axes.set(xlim=(first - 2, last + 2), ylim=(len(ideas) - 0.3, -0.7))
    axes.set_yticks([])
    axes.set_xticks(range(first // 10 * 10 + 10, last + 1, 20 if is_narrow else 10))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    for at, idea in enumerate(ideas):
        marker, colour = KINDS[idea.kind]
        axes.plot(idea.year, at, marker, color=COLOURS[colour], ms=6)
        text = idea.idea if is_narrow else f"{idea.idea}: {idea.authors}"
        is_early = idea.year < middle
        axes.annotate(
            f"{idea.year}  {text}" if is_early else f"{text}  {idea.year}",
            (idea.year, at),
            (8 if is_early else -8, 0),
            textcoords="offset points",
            va="center",
            ha="left" if is_early else "right",
            fontsize=6.5 if is_narrow else 8.5,
            bbox={"facecolor": COLOURS["bg"], "edgecolor": "none", "pad": 0.6},
        )
