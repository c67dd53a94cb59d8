"""A chart drawn by matplotlib: into any figure, or as SVG that follows the theme."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.views.base import COLOURS

SIZES = {"wide": (9.4, 3.7), "narrow": (4.6, 3.9)}
Height = float | Mapping[str, float] | None  # in inches, of all sizes or of each
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["line"],
    "xtick.color": COLOURS["dim"],
    "ytick.color": COLOURS["dim"],
    "text.color": COLOURS["fg"],
    "axes.labelcolor": COLOURS["dim"],
}


def draw(figure: Figure, size: str, draw_content: Callable[[Axes], None], height: Height = None) -> None:
    """Draw `content` between axes, in one of the sizes; `height` is in inches, if it depends on the content."""
    with matplotlib.rc_context(STYLE):
        width, tall = SIZES[size]
        own = height[size] if isinstance(height, Mapping) else height
        figure.set_size_inches(width, own or tall)
        axes = figure.add_subplot()
        _prepare(axes)
        draw_content(axes)


def _prepare(axes):
    axes.grid(color=COLOURS["line"], linewidth=0.8)
    axes.tick_params(length=0)


def side_by_side(axes: Axes, count: int) -> list[Axes]:
    """Return axes in as many columns, which take the place of the given ones; one column is these themselves."""
    figure, place = axes.figure, axes.get_subplotspec()
    if count == 1 or place is None:
        return [axes]
    axes.remove()
    columns = [figure.add_subplot(place) for place in place.subgridspec(1, count)]
    for column in columns:
        _prepare(column)
    return columns


def still_function(draw_content: Callable[[Axes], None]) -> Callable:
    """Return the function that draws `content` as a view's still picture."""
    return lambda figure, data, step: draw(figure, "wide", draw_content)


def set_logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, with a tick for each power of ten."""
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def svgs(draw_content: Callable[[Axes], None], height: Height = None) -> dict[str, str]:
    """Return the chart in each size, as SVG whose colours are the page's CSS variables."""
    return {size: _svg(draw_content, size, height) for size in SIZES}


def _svg(draw_content, size, height):
    text = io.StringIO()
    figure = Figure(layout="constrained")
    draw(figure, size, draw_content, height)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": size}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    # matplotlib knows no CSS: the light theme's colours stand for the variables until here
    for name, colour in COLOURS.items():
        svg = svg.replace(colour.lower(), f"var(--{'card' if name == 'bg' else name})")  # which lies behind a chart
    return svg[svg.index("<svg") :]
