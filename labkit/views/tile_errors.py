"""Rounding errors of convolutions by transforms (Winograd), over the side of the tile, for several filters."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit.conv.winograd.transforms import transforms
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.records_figure import LINE, STEP_STYLES, spread_apart

TILES, CHANNELS, SEED = 400, 16, 9


def tile_errors(
    title: str,
    runs: Mapping[str, tuple[int, float]],
    taps: Sequence[int] = (3, 5, 7),
    sides: Sequence[int] = (4, 5, 6, 7, 8, 9, 10),
) -> View:
    """Draw the errors of F(m x m, r x r) in float32 over the side of its tile, m + r - 1 pixels.

    The lines are computed in NumPy with `conv.transforms`, from random tiles of 16 channels; an error is relative, of
    all outputs together, against float64.

    Parameters
    ----------
    title
        The message, in a sentence.
    runs
        Dots: for each kernel, the side of its tile and the error of its run.
    taps, sides
        Sides of the filters, and of the tiles.
    """
    errors = {r: {side: tile_error(side - r + 1, r) for side in sides if side > r} for r in taps}
    if not all(errors.values()):
        raise ValueError(f"A tile is larger than its filter: {max(sides)} pixels are too few for {max(taps)} taps.")

    def draw_content(axes: Axes):
        _draw(axes, errors, runs, sides)

    first, last = min(errors[taps[0]]), max(errors[taps[0]])
    ratio = errors[taps[0]][last] / errors[taps[0]][first]
    data = {
        "say": f"With {taps[0]} x {taps[0]} taps the error of a tile of {last} x {last} pixels is "
        f"**{ratio:,.0f} times** that of {first} x {first}.",
        "charts": chart.svgs(draw_content),
        "legend": [("―", "dim", "computed in NumPy, float32"), ("●", "dim", "runs of kernels in the simulator")],
        "table": table(
            ["side of the tile", *(f"error, {r} x {r} taps" for r in taps), "kernels"],
            [
                [
                    side,
                    *(f"{errors[r][side]:.1e}" if side in errors[r] else "" for r in taps),
                    ", ".join(f"{name}: {error:.1e}" for name, (of, error) in runs.items() if of == side),
                ]
                for side in sides
            ],
        ),
    }
    return View("chart", title, data, chart.still_function(draw_content))


def tile_error(m: int, r: int) -> float:
    """Return the relative error of F(m x m, r x r) in float32, for random pixels and taps of several channels."""
    rng, n = np.random.default_rng(SEED), m + r - 1
    d = rng.standard_normal((TILES, CHANNELS, n, n), np.float32)
    g = rng.standard_normal((CHANNELS, r, r), np.float32)
    results = []
    for dtype in (np.float32, np.float64):
        A, G, B = (matrix.astype(np.float64).astype(dtype) for matrix in transforms(m, r))
        products = (G @ g.astype(dtype) @ G.T) * (B.T @ d.astype(dtype) @ B)
        results.append(A.T @ products.sum(axis=1) @ A)
    computed, exact = results
    return float(np.linalg.norm(computed - exact) / np.linalg.norm(exact))


def _draw(axes, errors, runs, sides):
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
    for by_side, (marker, _, colour) in zip(errors.values(), STEP_STYLES):
        axes.plot(by_side.keys(), by_side.values(), marker=marker, ms=4, mfc="none", color=COLOURS[colour])
    for name, (side, error) in runs.items():
        axes.plot(side, error, "o", ms=8, color=COLOURS["fg"])
        axes.annotate(name, (side, error), (8, -12), textcoords="offset points", weight="bold")
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.8, high)  # room for a name below the lowest dot
    axes.set_xlim(sides[0] - 0.3, sides[-1] + 1.2)
    axes.set_xticks(sides, [f"{side} x {side}" for side in sides])
    axes.set(xlabel="pixels of a tile", ylabel="error, relative")
    axes.figure.draw_without_rendering()  # which computes the places of the lines' ends
    pixel = axes.figure.dpi / 72
    ends = []
    for (r, by_side), (_, sign, colour) in zip(errors.items(), STEP_STYLES):
        place = max(by_side), by_side[max(by_side)]
        ends.append((axes.transData.transform(place)[1] / pixel, place, f"{sign[1]} {r} x {r} taps", colour))
    ends.sort()
    for (y, place, text, colour), height in zip(ends, spread_apart([end[0] for end in ends], LINE)):
        style = {"textcoords": "offset points", "va": "center", "color": COLOURS[colour], "weight": "bold"}
        axes.annotate(text, place, (8, height - y), **style)
