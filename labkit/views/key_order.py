"""Scores as accumulators, and as 8-bit operand of the next product: which keys a lane holds, and which it needs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import check_trace, join

KEYS, LANES, TILE = 16, 4, 8  # keys that are drawn, lanes that share a row, columns of an accumulator tile


def key_order(trace: Trace, order: Sequence[int], A: str = "A", C: str = "C") -> View:
    """Step through the lanes that share a row: keys of their scores, and keys that they need as left operand.

    Parameters
    ----------
    trace
        A run of one warp that loads the left operand of an 8-bit `mma` from A, as words, and stores its sums to C.
    order
        The keys of each 16 of V, as they are stored.
    A, C
        The arrays' names in the kernel.
    """
    check_trace("key_order", trace)
    if sorted(order) != list(range(KEYS)):
        raise ValueError(f"order is not one of the {KEYS} keys 0 to {KEYS - 1}: give each once.")
    words, width = (trace.array(name).shape[1] for name in (A, C))
    sums, operand = (
        _of_first_row(trace, name, kind, row) for name, kind, row in ((C, "store", width), (A, "load", words))
    )
    held = [sorted(column + TILE * tile for column in sums[lane] for tile in range(2)) for lane in range(LANES)]
    needed = [[4 * word + n for word in operand[lane] if word < KEYS // 4 for n in range(4)] for lane in range(LANES)]
    if any(len(keys) != 4 for keys in (*held, *needed)):
        raise ValueError(
            f"In this run of {trace.kernel} a lane does not take 4 keys of a row: show an `mma` of 8 bits."
        )
    stored = [[int(order[place]) for place in places] for places in needed]
    rows = [
        [lane, *(join(list(map(str, keys))) for keys in (held[lane], needed[lane], stored[lane]))]
        for lane in range(LANES)
    ]
    data = {
        "say": [_sentence(lane, held[lane], needed[lane], stored[lane]) for lane in range(LANES)],
        "counter": [f"lane {lane}" for lane in range(LANES)],
        "start": 2,
        "held": held,
        "needed": needed,
        "order": [int(key) for key in order],
        "table": table(["lane", "holds keys", "needs, in memory order", "needs, in V's order"], rows),
    }
    return View("key_order", "Which keys a lane holds, and which it needs", data, draw_still)


def _of_first_row(trace, name, kind, width) -> list[list[int]]:
    """Return the columns of the first row that each of its lanes accesses."""
    sites = [i for i, site in enumerate(trace.sites) if (site.site.array, site.site.kind) == (name, kind)]
    samples = trace.samples
    index = samples.index[np.isin(samples.site, sites) & (samples.warp == 0)]
    return [[int(element) for element in index[:, lane] if 0 <= element < width] for lane in range(LANES)]


def _sentence(lane, held, needed, stored) -> str:
    names = join(list(map(str, held)))
    both, all_of_them = (len({*held} & {*keys}) for keys in (needed, stored))
    return (
        f"**Lane {lane}** holds the scores of keys {names}. With V in memory order it needs {needed[0]} to "
        f"{needed[-1]}: it has **{both} of 4**. In V's own order it has **{all_of_them} of 4**."
    )


def draw_still(figure, data, step):
    """Draw the keys as accumulators and as operand in both orders; those of the lane are filled."""
    stills.set_size_and_title(figure, data, step, 9, 2.6)
    axes = figure.add_subplot()
    held = data["held"][step]
    for line, keys in enumerate((range(KEYS), range(KEYS), data["order"])):
        for place, key in enumerate(keys):
            is_taken = key in held if line == 1 else place in data["needed"][step]
            face = "cell" if not is_taken else "C" if key in held else "hot"
            axes.add_patch(Rectangle((place, 1.6 * line), 0.92, 1, facecolor=COLOURS[face]))
            stills.write(
                axes, place + 0.46, 1.6 * line + 0.5, str(key), fontsize=8, color=COLOURS["bg" if is_taken else "fg"]
            )
    for line, text in enumerate(("operand, memory order", "accumulators", "operand, V's order")):
        axes.text(-0.3, 1.6 * line + 0.5, text, fontsize=8, ha="right", va="center", color=COLOURS["fg"])
    axes.set(xlim=(-5, KEYS), ylim=(4.4, -0.2), xticks=[], yticks=[])
    stills.hide_marks(axes)
