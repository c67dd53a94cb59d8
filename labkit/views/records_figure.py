"""The content of a chart of recorded figures: groups of bars, or lines with their names at the right end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS

STEP_STYLES = (("o", "●○", "A"), ("s", "■□", "C"), ("^", "▲△", "D"), ("D", "◆◇", "B"), ("v", "▼▽", "ink"))
BASELINE_COLOUR = "dim"
LETTER, LINE = 6.0, 12.0  # a letter's width and a line's height, in points
MARGIN = 60.0  # of tick labels beside a chart, in points
SIGN, NAME = 9.0, 21.0  # from the last dot to the sign and the name of its line, in points
FEW_DECADES = 1000  # a logarithmic scale up to this factor has labels at 1, 2 and 5
LOG_FROM = 30  # a scale is logarithmic where the largest value is so many times the smallest
BAR, GROUP, EDGES = 0.2, 0.38, 0.75  # height of a bar, of a group's name, and of both edges, in inches
LONE_GAP = 0.12  # between bars of a single series, in inches
TALLEST = 4.9  # inches of one column of bars; a wide chart has two where one would be taller than a screen
BEHIND = {"facecolor": COLOURS["bg"], "edgecolor": "none", "pad": 0.8}  # of a text, so that no line strikes it through


@dataclass(frozen=True)
class Series:
    """A step of ours, or a baseline, with its value at each place that has one; `label` is what the chart calls it."""

    name: str | float
    label: str
    values: Mapping
    is_step: bool


@dataclass(frozen=True)
class Peak:
    """A value that limits all others or compares with them, and what is written at its line.

    `beyond` says what the part of a bar beyond it is, which is then hatched.
    """

    value: float
    text: str
    beyond: str = ""


@dataclass(frozen=True)
class RecordsChart:
    """Draws series between the axes of a chart.

    Attributes
    ----------
    names
        Names of the places, which are values of `x`.
    is_line
        Lines over numbers, not bars.
    limits
        Computed limits by the names of series, marked at their bars.
    """

    series: list[Series]
    places: list
    names: list[str]
    x: str
    y: str
    peak: Peak | None
    is_line: bool
    limits: Mapping = field(default_factory=dict)

    @property
    def hatched(self) -> list[tuple[str, str, str]]:
        """Line of the legend for parts of bars beyond the peak, if there are any."""
        if self.is_line or not self.peak or not self.peak.beyond:
            return []
        passing = [one.is_step for one in self.series if max(one.values.values()) > self.peak.value]
        return [("▨", "A" if any(passing) else BASELINE_COLOUR, f"hatched: {self.peak.beyond}")] if passing else []

    @property
    def heights(self) -> dict[str, float] | None:
        """Inches that the bars need in each size of a chart; None for lines, which fit any height."""
        if self.is_line:
            return None
        return {size: self._height(len(self._columns(width)[0])) for size, (width, _) in chart.SIZES.items()}

    def _height(self, places: int) -> float:
        return EDGES + places * (self._gap + BAR * len(self.series))

    def _columns(self, width: float) -> list[list]:
        """Return places of each column of bars: two, of which the first may be longer, where one would be too tall."""
        is_wide = width > chart.SIZES["narrow"][0]
        if not is_wide or len(self.places) < 2 or self._height(len(self.places)) <= TALLEST:
            return [self.places]
        half = (len(self.places) + 1) // 2
        return [self.places[:half], self.places[half:]]

    @property
    def _gap(self) -> float:
        """Inches above a group of bars: its name stands there, or at the left of its only bar."""
        return GROUP if len(self.series) > 1 else LONE_GAP

    def __call__(self, axes: Axes) -> None:
        (self._lines if self.is_line else self._bars)(axes)

    def _lines(self, axes):
        letters = max(len(self._end_name(one)) for one in self.series)
        wide = max(1.0, 72 * axes.figure.get_figwidth() - MARGIN)
        first, last = self.places[0], self.places[-1]
        named = min(0.6, (LETTER * letters + NAME) / wide)  # share of the width that names take
        axes.set_xscale("log")
        axes.set_xlim(first * (first / last) ** 0.03, last * (last / first) ** (named / (1 - named)))
        axes.set_xticks(self.places, self._names_with_room(wide * (1 - named)))
        axes.xaxis.set_minor_locator(NullLocator())
        for one, (marker, _, colour) in zip(self.series, series_styles(self.series)):
            at = [place for place in self.places if place in one.values]
            style = {"linestyle": "-", "mfc": COLOURS[colour]} if one.is_step else {"linestyle": "--", "mfc": "none"}
            values = [one.values[place] for place in at]
            dots = "" if len(set(values)) == 1 < len(values) else marker  # of a step that does not depend on x
            axes.plot(at, values, marker=dots, ms=5.5, color=COLOURS[colour], linewidth=1.6, **style)
        self._scale(axes)
        axes.set(xlabel=self.x, ylabel=self.y)
        if self.peak:
            axes.plot([first, last], [self.peak.value] * 2, color=COLOURS["fg"], linewidth=1.8)
            peak = self.peak.value
            end, side = max(((first, "left"), (last, "right")), key=lambda end: self._distance(peak, end[0]))
            style = {"textcoords": "offset points", "weight": "bold", "ha": side, "bbox": BEHIND}
            axes.annotate(self.peak.text, (end, self.peak.value), (0, 6), **style)
        self._names_at_the_end(axes)

    def _names_with_room(self, wide):
        """Return the names under the x axis of `wide` points, the last one first: "" for a name that would touch it."""
        whole, end = log(self.places[-1] / self.places[0]), inf
        names = []
        for place, name in zip(self.places[::-1], self.names[::-1]):
            middle, half = wide * log(place / self.places[0]) / whole, LETTER * len(name) / 2
            has_room = middle + half < end
            names.append(name if has_room else "")
            end = middle - half - LETTER if has_room else end
        return names[::-1]

    def _distance(self, value, place):
        """Return how far the nearest line is from a value at a place, as the logarithm of their ratio."""
        values = [one.values[place] for one in self.series if one.values.get(place)]
        return min((abs(log(value / other)) for other in values), default=inf)

    def _scale(self, axes):
        """Scale the y axis from 0, or logarithmically if values differ by a large factor."""
        values = [value for one in self.series for value in one.values.values()]
        top = max([*values, self.peak.value] if self.peak else values)
        if min(values) > 0 and top / min(values) >= LOG_FROM:
            axes.set_yscale("log")
            few = top / min(values) < FEW_DECADES  # then powers of 10 are too far apart to read a value
            axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5) if few else (1,)))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylim(min(values) / 1.5, top * 1.5)
        else:
            axes.set_ylim(0, 1.1 * top or 1)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))

    def _names_at_the_end(self, axes):
        """Write names next to the last dots, moved where they would overlap."""
        axes.figure.draw_without_rendering()  # which computes the dots' places
        pixel = axes.figure.dpi / 72
        ends = []
        for one, (_, sign, colour) in zip(self.series, series_styles(self.series)):
            last = max(one.values)
            (_, y) = axes.transData.transform((last, one.values[last]))
            ends.append((y / pixel, one, sign, colour))
        ends.sort(key=lambda end: end[0])
        heights = spread_apart([end[0] for end in ends], LINE)
        for (y, one, sign, colour), height in zip(ends, heights):
            place = self.places[-1], one.values[max(one.values)]
            style = {"textcoords": "offset points", "va": "center"}
            axes.annotate(sign, place, (SIGN, height - y), color=COLOURS[colour], **style)
            axes.annotate(self._end_name(one), place, (NAME, height - y), **style)

    def _end_name(self, one):
        """Return a line's name, with the place where it ends if that is not the last one."""
        last = max(one.values)
        return one.label if last == self.places[-1] else f"{one.label} (to {self.names[self.places.index(last)]})"

    def _bars(self, axes):
        columns = self._columns(axes.figure.get_figwidth())
        end = len(columns[0]) * (self._gap + BAR * len(self.series)) + BAR / 2
        for column, places in zip(chart.side_by_side(axes, len(columns)), columns):
            self._column(column, places, end)

    def _column(self, axes, places, end):
        """Draw the bars of some places, from the top; the axes reach down to `end`."""
        top = max(value for one in self.series for value in one.values.values())
        at, ticks, labels, is_lone = 0.0, [], [], len(self.series) == 1
        for place in places:
            name = self.names[self.places.index(place)]
            if not is_lone:
                name_place = 0, at + GROUP / 2
                style = {"textcoords": "offset points", "weight": "bold", "va": "center", "bbox": BEHIND}
                axes.annotate(name, name_place, (0, -3), **style)
            at += self._gap
            for one in self.series:
                middle = at + BAR / 2
                ticks.append(middle)
                labels.append(name if is_lone else one.label)
                self._bar(axes, one, one.values.get(place), middle)
                at += BAR
        top = max(top, *self.limits.values()) if self.limits else top
        limit = max(top, self.peak.value) if self.peak else top
        xlabel = f"{self.series[0].label}: {self.y}" if is_lone else self.y
        axes.set(xlim=(0, 1.15 * limit or 1), ylim=(end, 0))
        axes.set_xlabel(xlabel, loc="right" if is_lone else "center")  # which is long, and may begin left of the bars
        axes.set_yticks(ticks, labels)
        for one, tick in zip(self.series * len(places), axes.get_yticklabels()):
            if one.is_step:
                tick.set_color(COLOURS["fg"])
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        if self.peak:
            axes.axvline(self.peak.value, color=COLOURS["fg"], linewidth=1.8)
            side, shift = ("right", -4) if self.peak.value > limit / 2 else ("left", 4)  # where there is more room
            style = {"textcoords": "offset points", "ha": side, "weight": "bold"}
            axes.annotate(self.peak.text, (self.peak.value, 0), (shift, 4), **style)

    def _bar(self, axes, one, value, middle):
        if value is None:
            text, colour = "not measured", COLOURS["dim"]
        else:
            face = COLOURS["A"] if one.is_step else "none"
            edge = COLOURS["A" if one.is_step else BASELINE_COLOUR]
            style = {"height": 0.75 * BAR, "edgecolor": edge, "linewidth": 1.2}
            inside = min(value, self.peak.value) if self.peak and self.peak.beyond else value
            axes.barh(middle, inside, color=face, **style)
            if value > inside:
                axes.barh(middle, value - inside, left=inside, color="none", hatch="/////", **style)
            text, colour = short_number(value), COLOURS["fg"]
        end = value or 0
        if one.name in self.limits:
            limit = self.limits[one.name]
            axes.plot([limit] * 2, [middle - BAR / 2, middle + BAR / 2], color=COLOURS["fg"], linewidth=2)
            text += f", limit {short_number(limit)}"
            end = max(end, limit)
        style = {"textcoords": "offset points", "va": "center", "bbox": BEHIND}
        axes.annotate(text, (end, middle), (6, 0), color=colour, **style)


def series_styles(series: list[Series]) -> list[tuple[str, str, str]]:
    """Return marker, sign and colour of each series: colours for steps, hollow and grey for baselines."""
    styles, counts = [], {True: 0, False: 0}
    for one in series:
        marker, (full, hollow), colour = STEP_STYLES[counts[one.is_step] % len(STEP_STYLES)]
        counts[one.is_step] += 1
        styles.append((marker, full, colour) if one.is_step else (marker, hollow, BASELINE_COLOUR))
    return styles


def legend(series: list[Series], is_line: bool, limits: Mapping | None = None) -> list[tuple[str, str, str]]:
    """Return lines of the legend: mark, colour and text. Steps and baselines have marks of their own."""
    steps = ("―", "fg", "steps of this book") if is_line else ("■", "A", "steps of this book")
    baselines = ("╌", BASELINE_COLOUR, "baselines") if is_line else ("□", BASELINE_COLOUR, "baselines")
    kinds = [steps, baselines] if len({one.is_step for one in series}) == 2 else []
    return kinds + [("|", "fg", "computed limit")] * bool(limits)


def spread_apart(heights: list[float], distance: float) -> list[float]:
    """Move rising heights as little as needed for distances of at least `apart`; neighbours keep their mean."""
    groups: list[list[float]] = []  # of each: sum of middles, count
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1 and _gap(*groups[-2:]) < distance * (groups[-2][1] + groups[-1][1]) / 2:
            total, count = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += count
    moved = []
    for total, count in groups:
        middle = total / count
        moved += [middle + distance * (place - (count - 1) / 2) for place in range(int(count))]
    return moved


def _gap(lower, upper):
    return upper[0] / upper[1] - lower[0] / lower[1]
