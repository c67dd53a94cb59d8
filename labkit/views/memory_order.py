"""A small image in each layout: where each number is stored in memory."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit import layouts
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack

MOST_ELEMENTS = 64  # whose numbers can be read in a line


def memory_order(channels: int = 8, height: int = 2, width: int = 3, *, vector: int = 4) -> View:
    """Show a numbered image, and the same numbers as they are stored in NCHW, NCHW_VECT_C and NHWC.

    `layouts.convert` makes the orders. Steps mark each row of a channel, and after these each pixel with its channels.

    Parameters
    ----------
    channels, height, width
        Sizes of the image.
    vector
        Channels that are neighbours in NCHW_VECT_C: 4 or 32.
    """
    if channels * height * width > MOST_ELEMENTS or channels % vector:
        raise ValueError(
            f"memory_order numbers at most {MOST_ELEMENTS} elements, and whole vectors of {vector} channels, not "
            f"{channels} x {height} x {width}: choose other sizes."
        )
    x = np.arange(channels * height * width, dtype=np.int32).reshape(1, channels, height, width)
    orders = {
        "NCHW": x,
        f"NCHW_VECT_C, {vector} channels": layouts.convert(x, "NCHW", "NCHW_VECT_C", vector=vector),
        "NHWC": layouts.convert(x, "NCHW", "NHWC"),
    }
    places = {name: np.argsort(order.ravel()) for name, order in orders.items()}  # of each number
    marked, names = [], []
    for c in range(channels):
        for row in range(height):
            marked.append(x[0, c, row])
            names.append(f"Row {row} of channel {c}")
    for row in range(height):
        for col in range(width):
            marked.append(x[0, :, row, col])
            names.append(f"All channels of the pixel in row {row}, column {col}")
    runs = [[_runs(of[numbers]) for of in places.values()] for numbers in marked]
    flat = np.full((len(marked), max(map(len, marked))), -1)
    for step, numbers in enumerate(marked):
        flat[step, : len(numbers)] = numbers
    data = {
        "say": [_sentence(name, numbers, places, of) for name, numbers, of in zip(names, marked, runs)],
        "shape": [channels, height, width],
        "layouts": list(orders),
        "orders": pack(np.stack([order.ravel() for order in orders.values()])),
        "marked": pack(flat),
        **stats_by_step(["marked"], [[name] for name in names], [f"separate places, {name}" for name in orders], runs),
    }
    return View("memory_order", f"{channels} channels of {height} x {width} pixels, in memory", data, draw_still)


def _runs(places) -> int:
    """Count runs of neighbours in memory."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(places)) != 1))


def _sentence(name, numbers, places, runs):
    parts = []
    for (layout, of), count in zip(places.items(), runs):
        distances = set(np.diff(np.sort(of[numbers])).tolist())
        apart = f", {distances.pop()} apart" if len(distances) == 1 else ""
        where = "**side by side**" if count == 1 else f"in **{count}** places{apart}"
        parts.append(f"{where} in {layout.partition(',')[0]}")
    return f"{name}: {len(numbers)} numbers, {'; '.join(parts)}."


def draw_still(figure, data, step):
    """Draw the lines of memory; the marked numbers have a frame."""
    stills.set_size_and_title(figure, data, step, 10, 2.8)
    orders, marked = unpack(data["orders"]), unpack(data["marked"])[step]
    channels, height, width = data["shape"]
    axes = figure.subplots()
    for line, (name, order) in enumerate(zip(data["layouts"], orders)):
        axes.text(0, 2 * line - 0.2, name, fontsize=8)
        for place, number in enumerate(order):
            strength = 0.06 + 0.5 * (number // (height * width)) / max(channels - 1, 1)
            colour = stills.tint("A", strength).tolist()
            axes.add_patch(Rectangle((place, 2 * line), 0.94, 1, facecolor=colour))
            stills.write(axes, place + 0.47, 2 * line + 0.5, number, fontsize=6)
    for line, order in enumerate(orders):
        for place in np.flatnonzero(np.isin(order, marked)).tolist():
            frame = Rectangle((place, 2 * line), 0.94, 1, fill=False, edgecolor=COLOURS["hot"], linewidth=2)
            axes.add_patch(frame)
    axes.set(xlim=(0, orders.shape[1]), ylim=(2 * len(orders) - 0.8, -1.2))
    axes.axis("off")
