"""The size of a convolution's lowered matrix, relative to its images: a law as curves, and layers as dots."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from labkit.conv import Forward
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table

STRIDES = 1, 2, 4
DASHES = {1: "-", 2: (0, (6, 3)), 4: (0, (2, 2))}
TICKS = 1, 2, 4, 9, 25, 49, 81, 121  # of the axis of factors


def lowered_sizes(title: str, layers: Mapping[str, Forward]) -> View:
    """Draw the elements of the lowered matrix per pixel, over the side of the filter.

    Curves are for padding that gives an output per `stride` pixels in each direction: R * R / stride**2. Dots are
    layers; one without padding is below its curve.

    Parameters
    ----------
    title
        The message, in a sentence.
    layers
        Problems with square filters, by name.
    """
    if wrong := [name for name, layer in layers.items() if layer.R != layer.S or layer.stride_h != layer.stride_w]:
        raise ValueError(f"{wrong[0]} has no square filter with one stride: leave it out.")
    factors = {name: lowered_factor(layer) for name, layer in layers.items()}

    def draw_content(axes: Axes):
        _draw(axes, layers, factors)

    below = [name for name, layer in layers.items() if factors[name] < layer.R**2 * (1 - 1e-9)]
    data = {
        "say": f"Of {len(layers)} layers, **{len(below)}** have a matrix that is smaller than R S times their images.",
        "charts": chart.svgs(draw_content),
        "legend": [("\u2015", "dim", "R S over the square of the stride"), ("\u25cf", "A", "a layer")],
        "table": table(
            ["layer", "R S", "stride", "elements of the matrix per pixel"],
            [[name, layer.R * layer.S, layer.stride_h, short_number(factors[name])] for name, layer in layers.items()],
        ),
    }
    return View("chart", title, data, chart.still_function(draw_content))


def lowered_factor(problem: Forward) -> float:
    """Return the elements of the lowered matrix per pixel of the images."""
    return problem.R * problem.S * problem.P * problem.Q / (problem.H * problem.W)


def _draw(axes, layers, factors):
    last = max(layer.R for layer in layers.values())
    for stride in (stride for stride in STRIDES if stride < last):
        sides = np.linspace(stride, last, 100)
        axes.plot(sides, (sides / stride) ** 2, color=COLOURS["dim"], linewidth=1.6, linestyle=DASHES[stride])
        axes.annotate(
            f"stride {stride}", (last, (last / stride) ** 2), (7, 0), textcoords="offset points", va="center",
            weight="bold",
        )  # fmt: skip
    for name, layer in layers.items():
        axes.plot(layer.R, factors[name], "o", color=COLOURS["A"], ms=7)
        is_right = last > layer.R
        axes.annotate(
            name, (layer.R, factors[name]), (9, -3) if is_right else (-4, -9), textcoords="offset points",
            ha="left" if is_right else "right", va="top",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_yticks(TICKS, [str(tick) for tick in TICKS])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(1, last + 1, 2))
    axes.set_xlim(0.7, last * 1.12)
    axes.set_ylim(0.7, last**2 * 1.3)
    axes.set(xlabel="side of the filter, R = S", ylabel="matrix, relative to images")
