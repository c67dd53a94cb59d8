"""Sum over the lanes of a warp: with each shuffle half as many lanes hold the total."""

from itertools import pairwise

import numpy as np
from jaxtyping import Integer

from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack


def shuffles(values: Integer[np.ndarray, "steps lanes"]) -> View:
    """Step through the shuffles that add up a warp.

    Parameters
    ----------
    values
        What each lane holds at first, and after each shuffle. Shuffle s adds the lane `lanes >> s` further on.
    """
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind not in "iu" or 1 << (len(values) - 1) != values.shape[1]:
        raise ValueError(
            "shuffles takes whole numbers: a row for 2**n lanes at first, and a row after each of n steps."
        )
    lanes = values.shape[1]
    for step, (before, after) in enumerate(pairwise(values), 1):
        distance = lanes >> step
        if not np.array_equal(after[:distance], before[:distance] + before[distance : 2 * distance]):
            raise ValueError(f"Shuffle {step} must add the lane {distance} further on, and these values differ.")
    steps = range(len(values))
    numbers = [[str(step), str(lanes >> step), f"{values[step, 0]:,}"] for step in steps]
    cells = [[" ".join(map(str, row[: lanes >> step]))] for step, row in enumerate(values)]
    labels = ["shuffles", "lanes that hold the total together", "value of lane 0"]
    data = {
        "say": [_sentence(values, step) for step in steps],
        "values": pack(values),
        **stats_by_step(["values that still count, from lane 0"], cells, labels, numbers),
    }
    return View("shuffles", f"Sum of a warp: {len(values) - 1} shuffles for {lanes} lanes", data, draw_still)


def _sentence(values, step):
    lanes = values.shape[1]
    if step == 0:
        return f"Each of the {lanes} lanes holds a value of its own, in a register."
    distance = lanes >> step
    text = f"Shuffle {step}: each lane adds the value of the lane **{distance}** further on. "
    if distance == 1:
        return f"{text}Lane 0 holds the sum of all {lanes}: **{values[step, 0]:,}**."
    return f"{text}Lanes 0 to {distance - 1} now hold the total together."


def draw_still(figure, data, step):
    """Draw the values of all lanes, a row per shuffle so far."""
    stills.set_size_and_title(figure, data, step, 10, 2.6)
    values = unpack(data["values"])
    rows, lanes = values.shape
    colours = np.ones((rows, lanes, 3))
    for row in range(step + 1):
        counts = np.arange(lanes) < lanes >> row
        colours[row] = np.where(counts[:, None], stills.tint("hot" if row == step else "A", 0.3), stills.rgb("cell"))
    axes = figure.add_subplot()
    stills.show_cells(axes, colours, lines=1.5, aspect="auto")
    for row, lane in np.ndindex(step + 1, lanes):
        stills.write(axes, lane, row, str(values[row, lane]), fontsize=7, alpha=1 if lane < lanes >> row else 0.5)
    axes.set_yticks(range(rows), ["at first", *(f"+ lane {lanes >> row} on" for row in range(1, rows))], fontsize=7)
    axes.tick_params(labelleft=True)
