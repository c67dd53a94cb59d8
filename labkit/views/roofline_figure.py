"""The content of a roofline chart: roofs, and the places of kernels under them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from labkit.forecast import roofline
from labkit.machine.gpus import Cpu, Gpu
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS

# Offsets of a name from its mark, in points: the first free one is used.
NAME_OFFSETS = ((10, -9), (-10, 9), (-10, -9), (10, 9), (10, -24), (-10, 24), (10, -39), (-10, 39), (10, -54))
# Where the memory roof's name may begin, from the roof's left end (0) to the ridge (1): the first free one is used.
ROOF_NAME_STARTS = (1 / 3, 0.45, 0.2, 0.55, 0.08, 0)
LETTER, HIGH = 6.2, 11  # a letter's width and height, in points


@dataclass(frozen=True)
class RooflinePoint:
    """A kernel's intensity and predicted speed, and its measured intensity and speed; either speed may be missing."""

    label: str
    intensity: float
    predicted_tflops: float | None
    measured_tflops: float | None = None
    measured_intensity: float | None = None


def draw_roofline(
    axes: Axes, points: list[RooflinePoint], device: Gpu | Cpu, precision: str, intensities: tuple | None = None
) -> None:
    """Draw roofs, kernels' places and names between logarithmic axes, over these intensities or those that fit."""
    chart.set_logarithmic(axes)
    left, right = intensities or _span(points, device, precision)
    bottom, top = _heights(points, device, precision, left)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.set(xlabel="arithmetic intensity (FLOP / byte of DRAM)", ylabel="TFLOP/s")
    figure: Any = axes.figure
    figure.draw_without_rendering()  # which computes the places of texts
    marks = _marks(axes, points)
    occupied = marks + _roofs(axes, device, precision, marks)
    _names(axes, points, occupied)


def _span(places, device, precision):
    ridge = roofline.ridge_point(device, precision)
    at = [place.intensity for place in places]
    measured = [place.measured_intensity for place in places if place.measured_tflops]
    left = min([ridge / 30, *(i / 4 for i in [*at, *measured])])
    return left, max([ridge * 30, *(i * 30 for i in at), *(i * 4 for i in measured)])


def _heights(places, device, precision, left):
    reached = [t for place in places for t in (place.predicted_tflops, place.measured_tflops) if t]
    lowest = min([roofline.attainable_tflops(device, left, precision), *reached])
    return lowest / 3, roofline.peak_tflops(device, precision) * 4


def _roofs(axes, device, precision, marks):
    """Draw the roofs with their names; returns the boxes of the memory roof's name."""
    left, right = axes.get_xlim()
    ridge = roofline.ridge_point(device, precision)
    peak = roofline.peak_tflops(device, precision)
    corners = np.array([left, ridge, right])
    axes.plot(corners, np.minimum(corners * device.dram_gb_s / 1000, peak), color=COLOURS["fg"], linewidth=2.2)
    name = f"{short_number(peak)} TFLOP/s" if peak >= 1 else f"{short_number(peak * 1000)} GFLOP/s"
    axes.annotate(f"{name} {precision}", (right, peak), (-4, 6), textcoords="offset points", ha="right", weight="bold")
    if isinstance(device, Cpu):
        core = peak / device.cores
        axes.axhline(core, color=COLOURS["dim"], linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate("one core", (right, core), (-4, 5), textcoords="offset points", ha="right", color=COLOURS["dim"])
    return _memory_name(axes, device, left, ridge, marks)


def _memory_name(axes, device, left, ridge, marks):
    """Write the bandwidth along the memory roof, clear of marks; returns a box for each letter."""
    speed = f"{device.dram_gb_s / 1000:.3g} TB/s" if device.dram_gb_s >= 1000 else f"{device.dram_gb_s:.3g} GB/s"
    text, angle, pixel = f"{speed} DRAM", _slope(axes), axes.figure.dpi / 72
    sin, cos = np.sin(angle), np.cos(angle)
    for share in ROOF_NAME_STARTS:
        intensity = left ** (1 - share) * ridge**share
        begin = intensity, intensity * device.dram_gb_s / 1000
        x, y = axes.transData.transform(begin) + np.array([-4, 7]) * pixel
        along = (np.arange(len(text)) + 0.5) * 1.1 * LETTER * pixel  # bold
        above, size = HIGH / 2 * pixel, 1.5 * HIGH * pixel
        letters = [_box(x + step * cos - above * sin, y + step * sin + above * cos, size, size) for step in along]
        if not any(_overlap(letter, mark) for letter in letters for mark in marks):
            break
    style = {"textcoords": "offset points", "ha": "left", "weight": "bold", "rotation_mode": "anchor"}
    axes.annotate(text, begin, (-4, 7), rotation=np.degrees(angle), **style)
    return letters


def _slope(axes):
    """Return the angle on the page of a line of slope 1 in the data."""
    box = axes.get_window_extent()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return np.arctan2(box.height / np.log(top / bottom), box.width / np.log(right / left))


def _marks(axes, places):
    """Draw hollow marks for predictions, filled ones for measurements, and lines between them; returns their boxes."""
    pixel = axes.figure.dpi / 72
    marks = []
    for place in places:
        predicted = (place.intensity, place.predicted_tflops)
        measured = (place.measured_intensity, place.measured_tflops)
        if place.predicted_tflops:
            axes.plot(*predicted, "o", ms=10, mfc="none", mec=COLOURS["A"], mew=1.8, zorder=4)
            marks.append(predicted)
        if place.measured_tflops:
            axes.plot(*measured, "o", ms=7, color=COLOURS["D"], zorder=5)
            marks.append(measured)
        if place.predicted_tflops and place.measured_tflops:
            axes.plot(*zip(predicted, measured), ":", color=COLOURS["dim"], linewidth=1.2, zorder=3)
    return [_box(x, y, 10 * pixel, 10 * pixel) for x, y in map(axes.transData.transform, marks)]


def _names(axes, places, occupied):
    """Write a name next to each place's mark, where nothing is drawn yet."""
    pixel = axes.figure.dpi / 72
    names = []
    for place in places:
        measured = (place.measured_intensity, place.measured_tflops)
        at = measured if place.measured_tflops else (place.intensity, place.predicted_tflops)
        x, y = axes.transData.transform(at)
        wide, tall = LETTER * len(place.label) * pixel, HIGH * pixel
        for side, down in NAME_OFFSETS:
            middle = x + side * pixel + (wide / 2 if side > 0 else -wide / 2)
            box = _box(middle, y + down * pixel, wide, tall)
            if not any(_overlap(box, other) for other in occupied + names):
                break
        names.append(box)
        axes.annotate(
            place.label, at, (side, down), textcoords="offset points", va="center", ha="left" if side > 0 else "right"
        )


def _box(x, y, wide, tall):
    return x - wide / 2, x + wide / 2, y - tall / 2, y + tall / 2


def _overlap(one, other):
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
