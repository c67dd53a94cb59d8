"""Online softmax: the values of a row arrive one by one, and each new maximum rescales the sum before it."""

from collections.abc import Sequence
from math import exp, isfinite

import numpy as np
from jaxtyping import Float32

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack


def rescaling(
    added: Sequence[float],
    x: Float32[np.ndarray, "rows columns"],
    maxima: Float32[np.ndarray, "rows columns"],
    totals: Float32[np.ndarray, "rows columns"],
    plain: Float32[np.ndarray, "rows columns"],
) -> View:
    """Step through the values of a row; a slider chooses the row.

    Parameters
    ----------
    added
        What each row has more than the one that is called 0, for the slider.
    x
        Logits, which are finite.
    maxima, totals
        What a kernel had after each value: the largest, and the sum of exponentials relative to it.
    plain
        The sum of exponentials of the values as they are, after each.
    """
    x, maxima, totals, plain = (np.asarray(X, np.float32) for X in (x, maxima, totals, plain))
    if x.ndim != 2 or any(X.shape != x.shape for X in (maxima, totals, plain)) or len(added) != len(x):
        raise ValueError("rescaling takes rows of logits, and maxima, totals and plain sums of the same shape.")
    if not np.isfinite(x).all():
        raise ValueError("rescaling draws logits that are finite: leave out rows with others.")
    largest = maxima.astype(float)
    relative = np.minimum(x.astype(float)[:, None, :] - largest[:, :, None], 0)
    has_arrived = np.tri(x.shape[1], dtype=bool)
    rows = []
    for of_row in zip(x, maxima, totals, plain, strict=True):
        steps = range(x.shape[1])
        rows.append({"say": [_sentence(k, *of_row) for k in steps], "stats": [_stats(k, *of_row) for k in steps]})
    first = int(np.argmin(np.abs(added)))
    columns = ["added", "value", "logit", "maximum", "sum", "sum of exp(x)"]
    lines = [
        [f"{more:g}", k + 1, *(_number(X[r, k]) for X in (x, maxima, totals, plain))]
        for r, more in enumerate(added)
        for k in range(x.shape[1])
    ]
    data = {
        "say": rows[first]["say"],
        "rows": rows,
        "first": first,
        "added": list(map(float, added)),
        "x": pack(x),
        "maxima": pack(maxima),
        "heights": pack(np.where(has_arrived, np.exp(relative), 0)),
        "labels": ["maximum so far", "factor of the old sum", "sum, relative to the maximum", "sum of exp(x) as it is"],
        "table": table(columns, lines),
    }
    return View("rescaling", "Online softmax: maximum and sum in one pass", data, draw_still)


def _factor(k, maxima):
    """Return the rescale factor of the sum before value k."""
    return exp(float(maxima[k - 1]) - float(maxima[k])) if k else 0.0


def _sentence(k, x, maxima, totals, plain):
    value, total = _number(x[k]), _number(totals[k])
    if k == 0:
        say = f"Value 1 is {value}, the first maximum. Its exponential relative to itself is 1."
    elif maxima[k] > maxima[k - 1]:
        apart = f"{_number(maxima[k - 1])} {'-' if x[k] >= 0 else '+'} {value.lstrip('-')}"
        say = (
            f"Value {k + 1} is {value}, a **new maximum**: all that was summed is multiplied by exp({apart}) = "
            f"**{_number(_factor(k, maxima))}**, and 1 is added. The sum is {total}."
        )
    else:
        more, maximum = _number(exp(float(x[k]) - float(maxima[k]))), _number(maxima[k])
        say = f"Value {k + 1} is {value}. The maximum stays {maximum}: {more} is added. The sum is {total}."
    if not isfinite(plain[k]):
        say += " The sum of exp(x) as it is has **overflowed**."
    elif plain[k] == 0:
        say += " The sum of exp(x) as it is has **vanished**: nothing can be divided by it."
    return say


def _stats(k, x, maxima, totals, plain):
    return [_number(maxima[k]), _number(_factor(k, maxima)) if k else "-", *map(_number, (totals[k], plain[k]))]


def _number(value):
    value = float(value)
    if not isfinite(value):
        return "infinite" if value > 0 else "NaN" if value != value else "-infinite"
    return f"{value:.2f}" if value == 0 or 0.005 <= abs(value) < 1e5 else f"{value:.0e}"


def draw_still(figure, data, step):
    """Draw the logits so far with their maximum, and the exponentials relative to it, of the row shown first."""
    stills.set_size_and_title(figure, data, step, 8.4, 4.2)
    above, below = figure.subplots(2, 1)
    row, x, heights = data["first"], unpack(data["x"]), unpack(data["heights"])
    columns = np.arange(x.shape[1])
    colours = [COLOURS["hot" if i == step else "A" if i < step else "line"] for i in columns]
    above.scatter(columns, x[row], c=colours, s=18)
    above.step(
        columns[: step + 1], unpack(data["maxima"])[row][: step + 1], where="post", color=COLOURS["fg"], linewidth=1
    )
    above.set_ylabel("logit", fontsize=8)
    if step:
        below.bar(columns, heights[row, step - 1], 0.8, color="none", edgecolor=COLOURS["dim"], linewidth=0.8)
    below.bar(columns, heights[row, step], 0.8, color=[COLOURS["hot" if i == step else "C"] for i in columns])
    below.set_ylabel("exp(x - maximum)", fontsize=8)
    below.set_ylim(0, 1.05)
    for axes in (above, below):
        axes.set_xlim(-0.7, x.shape[1] - 0.3)
        stills.hide_top_and_right(axes)
