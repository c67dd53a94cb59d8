"""The roofline chart itself: matplotlib, drawn once in the colours of either theme or as theme-aware SVG."""

import io
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from labkit import roofline
from labkit.gpus import Cpu, Gpu

# matplotlib knows no CSS: the light theme's colours stand for the variables and are replaced in the SVG.
COLOURS = {"fg": "#1b1f24", "dim": "#5b6570", "line": "#d5dae0", "A": "#0072b2", "hot": "#d55e00", "card": "#ffffff"}
SIZES = {"wide": (9.4, 3.7), "narrow": (4.6, 3.9)}


@dataclass(frozen=True)
class Place:
    """Where a kernel stands: its intensity, what the trace allows and, if it was recorded, what it reached."""

    label: str
    intensity: float
    predicted_tflops: float
    measured_tflops: float | None = None


def svg(places: list[Place], device: Gpu | Cpu, precision: str, size: str) -> str:
    """The chart as SVG whose colours are the page's CSS variables."""
    text = io.StringIO()
    with _style(hashsalt=size):
        draw(places, device, precision, size).savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    drawn = text.getvalue()
    for name, colour in COLOURS.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    return drawn[drawn.index("<svg") :]


def png(places: list[Place], device: Gpu | Cpu, precision: str) -> bytes:
    """The chart in the light theme, as a picture of 1,504 x 592 pixels."""
    data = io.BytesIO()
    with _style():
        draw(places, device, precision, "wide").savefig(data, format="png", dpi=160)
    return data.getvalue()


def _style(hashsalt="labkit"):
    return matplotlib.rc_context(
        {
            "font.family": "sans-serif",
            "font.size": 9.5,
            "svg.fonttype": "none",
            "svg.hashsalt": hashsalt,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": COLOURS["line"],
            "xtick.color": COLOURS["dim"],
            "ytick.color": COLOURS["dim"],
            "text.color": COLOURS["fg"],
            "axes.labelcolor": COLOURS["dim"],
        }
    )


def draw(places: list[Place], device: Gpu | Cpu, precision: str, size: str) -> Figure:
    """Roofs, kernels' places and their names on logarithmic axes."""
    figure = Figure(figsize=SIZES[size], layout="constrained")
    axes = figure.add_subplot()
    left, right, bottom, top = _limits(places, device, precision)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set(xlabel="arithmetic intensity (FLOP / byte of DRAM)", ylabel="TFLOP/s")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(color=COLOURS["line"], linewidth=0.8)
    axes.tick_params(length=0)
    _roofs(axes, device, precision)
    _places(axes, places)
    return figure


def _limits(places, device, precision):
    ridge = roofline.ridge_point(device, precision)
    peak = roofline.peak_tflops(device, precision)
    at = [place.intensity for place in places]
    left, right = min([ridge / 30, *(i / 4 for i in at)]), max([ridge * 30, *(i * 30 for i in at)])
    reached = [t for place in places for t in (place.predicted_tflops, place.measured_tflops) if t]
    return left, right, min([roofline.attainable_tflops(device, left, precision), *reached]) / 3, peak * 4


def _roofs(axes, device, precision):
    left, right = axes.get_xlim()
    ridge = roofline.ridge_point(device, precision)
    peak = roofline.peak_tflops(device, precision)
    corners = np.array([left, ridge, right])
    axes.plot(corners, np.minimum(corners * device.dram_gb_s / 1000, peak), color=COLOURS["fg"], linewidth=2.2)
    name = f"{peak:.3g} TFLOP/s" if peak >= 1 else f"{peak * 1000:.3g} GFLOP/s"
    axes.annotate(
        f"{name} {precision}", (right, peak), (-4, 6), textcoords="offset points", ha="right", weight="bold"
    )
    speed = f"{device.dram_gb_s / 1000:.3g} TB/s" if device.dram_gb_s >= 1000 else f"{device.dram_gb_s:.3g} GB/s"
    middle = (left**2 * ridge) ** (1 / 3)
    axes.annotate(
        f"{speed} DRAM",
        (middle, middle * device.dram_gb_s / 1000),
        (-4, 7),
        textcoords="offset points",
        ha="left",
        weight="bold",
        rotation=_slope_degrees(axes),
        rotation_mode="anchor",
    )


def _slope_degrees(axes):
    """The angle at which a line of slope 1 in the data stands on the page."""
    axes.figure.draw_without_rendering()
    box = axes.get_window_extent()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return np.degrees(np.arctan2(box.height / np.log(top / bottom), box.width / np.log(right / left)))


def _places(axes, places):
    """Hollow for what the trace allows, filled for what was measured, one name each."""
    taken = []
    for place in sorted(places, key=lambda place: place.predicted_tflops):
        axes.plot(
            place.intensity, place.predicted_tflops, "o", ms=10, mfc="none", mec=COLOURS["A"], mew=1.8, zorder=4
        )
        if place.measured_tflops:
            axes.plot(place.intensity, place.measured_tflops, "o", ms=7, color=COLOURS["hot"], zorder=5)
        x, y = axes.transData.transform((place.intensity, place.measured_tflops or place.predicted_tflops))
        gap = 15 * axes.figure.dpi / 72
        while any(abs(x - other_x) < 9 * gap and abs(y - other_y) < gap for other_x, other_y in taken):
            y -= gap
        taken.append((x, y))
        at = axes.transData.inverted().transform((x, y))
        axes.annotate(place.label, at, (11, 0), textcoords="offset points", va="center")
