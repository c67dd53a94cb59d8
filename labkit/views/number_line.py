"""Number formats on a line: the numbers of each between 1 and 2, the nearest one to a value, and the range."""

from collections.abc import Mapping
from math import log10

import numpy as np
from jaxtyping import Float64

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table

STEPS = 48  # values from 1 to 2 that the slider takes


def number_line(numbers: Mapping[str, Float64[np.ndarray, "count"]]) -> View:
    """Step through values from 1 to 2 and mark the nearest number of each format; below, the formats' ranges.

    Parameters
    ----------
    numbers
        All finite numbers of each format, by its name.
    """
    positive = {name: np.unique(values[values > 0]) for name, values in numbers.items()}
    if not positive or any(values.size < 2 or values[-1] < 2 for values in positive.values()):
        raise ValueError("number_line takes all numbers of each format, {'float16': array}, with some up to 2 or more.")
    ticks = {name: values[(values >= 1) & (values <= 2)] for name, values in positive.items()}
    targets = [1 + n / STEPS for n in range(STEPS + 1)]
    nearest = {name: [float(near[np.abs(near - x).argmin()]) for x in targets] for name, near in ticks.items()}
    rows = [[f"{x:.4f}", *(f"{nearest[name][n]:.6g}" for name in ticks)] for n, x in enumerate(targets)]
    data = {
        "say": [_sentence(x, {name: found[n] for name, found in nearest.items()}) for n, x in enumerate(targets)],
        "counter": [f"value {x:.4f}" for x in targets],
        "start": 14,
        "targets": targets,
        "formats": [
            {
                "name": name,
                "ticks": pack(np.float32(ticks[name])),
                "nearest": nearest[name],
                "ends": [log10(values[0]), log10(values[-1])],
                "words": f"{values[0]:.2g} to {values[-1]:.3g}",
            }
            for name, values in positive.items()
        ],
        "table": table(["value", *ticks], rows, by_step=True),
    }
    return View("number_line", "Numbers of each format between 1 and 2, and how far they reach", data, draw_still)


def _sentence(x, nearest) -> str:
    errors = [f"{name} by **{100 * abs(value - x) / x:.2g}%**" for name, value in nearest.items()]
    return f"The value {x:.4f}, rounded to the nearest number of each format, is off in {', in '.join(errors)}."


def draw_still(figure, data, step):
    """Draw a row of ticks per format with its nearest number, and a bar of its range."""
    formats, x = data["formats"], data["targets"][step]
    stills.set_size_and_title(figure, data, step, 9.5, 0.8 * len(formats) + 1.2, fontsize=8)
    above, below = figure.subplots(2, 1)
    for row, shown in enumerate(formats):
        near = shown["nearest"][step]
        inside = np.unique([1.0, 2.0, near, *np.linspace(1, 2, min(shown["ticks"]["shape"][0], 129))])
        above.vlines(inside, row, row + 0.7, color=COLOURS["A"], linewidth=0.7)
        above.vlines([near], row, row + 0.7, color=COLOURS["hot"], linewidth=2)
        low, high = shown["ends"]
        below.barh(row + 0.35, high - low, 0.6, left=low, color=COLOURS["A"])
        below.text(high + 1, row + 0.35, shown["words"], fontsize=7, va="center")
    above.axvline(x, color=COLOURS["fg"], linewidth=0.8, linestyle="--")
    below.set_xlabel("power of ten", fontsize=8)
    for axes in (above, below):
        axes.set_yticks([row + 0.35 for row in range(len(formats))], [shown["name"] for shown in formats])
        axes.invert_yaxis()
        stills.hide_top_and_right(axes)
