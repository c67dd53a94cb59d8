"""Curves over a number, computed in a chapter, and dots of runs beside them."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.records_figure import LINE, STEP_STYLES, spread_apart
from labkit.views.wording import join

LETTER, NAME = 6.4, 21.0  # width of a letter, and from a curve's end to its name, in points


def curves(
    title: str,
    lines: Mapping[str, Mapping[float, float]],
    *,
    x: str,
    y: str,
    dots: Mapping[float, float] | None = None,
    ticks: Sequence[float] | None = None,
    about: float | None = None,
    unit: str = "",
    logarithmic: bool = False,
) -> View:
    """Draw a curve for each name, which stands at its right end; dots are values that runs gave.

    Parameters
    ----------
    title
        The message, in a sentence.
    lines
        Values of each curve by `x`; at most five curves.
    x, y
        What the axes show.
    dots
        Values of runs in the simulator, by `x`.
    ticks
        Numbers on the x axis; round ones if left out.
    about
        The `x` that the sentence is about; the last one if left out.
    unit
        Written after each value: "%".
    logarithmic
        Make both axes logarithmic; each value of a curve is then marked.
    """
    if not lines or not all(lines.values()):
        raise ValueError("curves takes the values of each curve by x: {'float32': {16: 1e-7}}.")
    if len(lines) > len(STEP_STYLES):
        raise ValueError(f"The chart would have {len(lines)} curves, more than {len(STEP_STYLES)}: leave some out.")
    places = sorted({place for values in lines.values() for place in values} | set(dots or ()))
    at = places[-1] if about is None else about
    if missing := [name for name, values in lines.items() if at not in values]:
        raise ValueError(f"The sentence cannot be about {x} {at}: {join(missing)} has no value there.")

    def draw_content(axes: Axes):
        _draw(axes, lines, dots or {}, logarithmic)
        axes.set(xlabel=x, ylabel=y)
        _make_room(axes, max(map(len, lines)), ticks, logarithmic)
        _write_names(axes, lines, logarithmic)

    marks = [(_sign(n, logarithmic), STEP_STYLES[n][2], name) for n, name in enumerate(lines)]
    values = [f"{name} **{short_number(of_line[at])}{unit}**" for name, of_line in lines.items()]
    columns = [*lines, *(["runs"] if dots else ())]
    by_column = [*lines.values(), *([dots] if dots else ())]
    data = {
        "say": f"At {x} = {at:,}: {join(values)}.",
        "charts": chart.svgs(draw_content),
        "legend": [*marks, *([("●", "fg", "runs in the simulator")] if dots else ())],
        "table": table(
            [x, *(f"{name}, {unit}" if unit else name for name in columns)],
            [[f"{place:,}", *(short_number(of[place]) if place in of else "" for of in by_column)] for place in places],
        ),
    }
    return View("chart", title, data, chart.still_function(draw_content))


def _sign(number, logarithmic) -> str:
    """Return the mark of a curve: that of its values, if they are marked."""
    return STEP_STYLES[number][1][0] if logarithmic else "―"


def _draw(axes, lines, dots, logarithmic):
    if logarithmic:
        chart.set_logarithmic(axes)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
    for values, (marker, _, colour) in zip(lines.values(), STEP_STYLES):
        places = sorted(values)
        style = {"marker": marker, "ms": 5} if logarithmic else {}
        axes.plot(places, [values[place] for place in places], color=COLOURS[colour], linewidth=1.6, **style)
    axes.plot([*dots], [*dots.values()], "o", color=COLOURS["fg"], ms=6, linestyle="none")
    if not logarithmic:
        axes.set_ylim(bottom=0)


def _make_room(axes, letters, ticks, logarithmic):
    """Let the x axis go on beyond the curves, as far as their names need."""
    first, last = axes.get_xlim()
    share = min(0.6, (LETTER * letters + NAME) / (72 * axes.figure.get_figwidth()))
    wider = share / (1 - share)
    end = last * (last / first) ** wider if logarithmic else last + (last - first) * wider
    ticks = [tick for tick in ticks or axes.get_xticks() if first <= tick <= last]
    axes.set_xlim(first, end)
    axes.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])


def _write_names(axes, lines, logarithmic):
    axes.figure.draw_without_rendering()  # which computes the places of the curves' ends
    pixel = axes.figure.dpi / 72
    ends = []
    for number, (name, values) in enumerate(lines.items()):
        sign, colour = _sign(number, logarithmic), STEP_STYLES[number][2]
        place = max(values), values[max(values)]
        ends.append((axes.transData.transform(place)[1] / pixel, place, name, sign, colour))
    ends.sort()
    for (height, place, name, sign, colour), wanted in zip(ends, spread_apart([end[0] for end in ends], LINE)):
        style = {"textcoords": "offset points", "va": "center"}
        axes.annotate(sign, place, (7, wanted - height), color=COLOURS[colour], **style)
        axes.annotate(name, place, (NAME, wanted - height), **style)
