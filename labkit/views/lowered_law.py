"""How large a run's lowered matrix is relative to its images, beside all other sides of the filter and strides."""

from math import isqrt

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from labkit.conv import Forward
from labkit.views import stills
from labkit.views.base import COLOURS
from labkit.views.lowered_sizes import lowered_factor
from labkit.views.wording import join

STRIDES, MOST_SIDE = (1, 2, 3), 5  # of the curves; a run beyond them has its own
SCALE = 0.1, 32.0  # of the axis of sizes, which is the same for all runs that fit into it
TICKS = 0.25, 1, 4, 16  # in multiples of the images; 1 is as large as these


def law_data(shape: tuple[int, ...], rows: int, setting: tuple[int, int]) -> dict:
    """Return the sizes of lowered matrices, relative to images of one shape, and the one of a run.

    Parameters
    ----------
    shape
        Of the images; channels, height and width are the last axes.
    rows
        Of the run's matrix: channels times taps.
    setting
        Stride and padding of the run, in both directions.
    """
    stride, padding = setting
    channels, height, width = (1, 1, *shape)[-3:]
    side = isqrt(rows // channels)
    if side * side * channels != rows:
        raise ValueError(f"A matrix of {rows} rows is not of {channels} channels and a square filter: give no setting.")
    last = min(max(MOST_SIDE, side), height + 2 * padding, width + 2 * padding)
    sides = range(padding + 1, last + 1)  # a smaller filter would meet zeros alone
    strides = sorted({*STRIDES, stride})

    def factor(R: int, u: int) -> float:
        return lowered_factor(Forward(1, 1, height, width, 1, R, R, u, u, padding, padding, padding, padding))

    factors = [[round(factor(R, u), 4) for R in sides] for u in strides]
    largest = max(map(max, factors))
    return {
        "strides": strides,
        "sides": list(sides),
        "factors": factors,
        "at": [strides.index(stride), list(sides).index(side)],
        "ends": [[factor, named] for factor, named in _names_at_the_end(strides, factors).items()],
        "scale": [min(SCALE[0], min(map(min, factors)) / 1.2), max(SCALE[1], largest * 1.2)],
        "ticks": list(TICKS),
    }


def _names_at_the_end(strides, factors) -> dict[float, str]:
    """Return what is written where curves end: one text for curves that end at one place."""
    ends: dict[float, list[int]] = {}
    for stride, curve in zip(strides, factors, strict=True):
        ends.setdefault(curve[-1], []).append(stride)
    return {end: f"stride {join(list(map(str, found)))}" for end, found in ends.items()}


def draw_law(axes: Axes, law: dict) -> None:
    """Draw the curves and the run's dot between axes."""
    chosen, at = law["at"]
    for stride, factors in zip(law["strides"], law["factors"], strict=True):
        is_chosen = stride == law["strides"][chosen]
        axes.plot(law["sides"], factors, color=COLOURS["D" if is_chosen else "dim"], ls="-" if is_chosen else "--")
    for end, named in law["ends"]:
        axes.annotate(named, (law["sides"][-1], end), (6, -3), textcoords="offset points", size=8)
    factor = law["factors"][chosen][at]
    axes.plot(law["sides"][at], factor, "o", color=COLOURS["D"], ms=7)
    axes.annotate(f"{factor:.2f}x", (law["sides"][at], factor), (-6, 5), textcoords="offset points", ha="right", size=9)
    axes.set_yscale("log")
    axes.set(
        xlim=(law["sides"][0] - 0.4, law["sides"][-1] + 0.6), ylim=law["scale"], xlabel="R, the side of the filter"
    )
    axes.set_yticks(law["ticks"], [f"{tick:g}x" for tick in law["ticks"]])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(law["sides"])
    axes.grid(axis="y", color=COLOURS["line"])
    axes.set_title("matrix, relative to images", fontsize=9, loc="left", weight="bold", color=COLOURS["fg"])
    stills.hide_top_and_right(axes)
