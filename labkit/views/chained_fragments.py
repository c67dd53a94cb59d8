"""Two products on tensor cores, chained: the accumulators of the first are the left operand of the second."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, pack, table, unpack
from labkit.views.wording import check_trace, join

ROWS, COLUMNS = 16, 16  # of the left operand in 16 bits: two accumulator tiles of 16 x 8
REGISTERS = 4  # of a lane, with two neighbouring elements each


def chained_fragments(trace: Trace, S: str = "S", P: str = "P") -> View:
    """Show for each lane which scores its accumulators hold, and which elements its operand registers need.

    Parameters
    ----------
    trace
        A run of one warp that stores its 8 accumulators to S (16 x 16 float32), as a product leaves them, and its 4
        operand registers to P (16 rows of 8 words of two elements), where the next product takes them from.
    S, P
        The arrays' names in the kernel.

    Raises
    ------
    ValueError
        The run stores something else, or P in other places than those of a left operand.
    """
    check_trace("chained_fragments", trace)
    sums, words = (_stored(trace, name) for name in (S, P))
    if len(sums) != 2 * REGISTERS or len(words) != REGISTERS:
        raise ValueError(
            f"chained_fragments shows one warp that stores 8 accumulators to {S} and 4 operand registers to {P} in "
            f"each lane; this run stores {len(sums)} and {len(words)}."
        )
    held = np.sort(sums, axis=0)
    needed = np.sort(np.concatenate([2 * words, 2 * words + 1]), axis=0)
    is_same = (held == needed).all(axis=0)
    rows = [
        [lane, *(_name(S, first) for first in sums[:, lane]), *(_name(P, 2 * word, 2) for word in words[:, lane])]
        for lane in range(WARP_LANES)
    ]
    columns = [
        "lane",
        *(f"c{n % 4} of tile {n // 4}" for n in range(2 * REGISTERS)),
        *(f"a{n}" for n in range(REGISTERS)),
    ]
    data = {
        "say": [_sentence(lane, sums[:, lane], words[:, lane], S, P, is_same[lane]) for lane in range(WARP_LANES)],
        "counter": [f"lane {lane}" for lane in range(WARP_LANES)],
        "start": 6,
        "names": [S, P],
        "sums": pack(sums),
        "words": pack(words),
        "table": table(columns, rows),
    }
    return View("chained_fragments", "Accumulators become the left operand of the next `mma`", data, draw_still)


def _stored(trace, array):
    """Return the element that each lane of the first warp stored, one row per store."""
    numbers = [i for i, site in enumerate(trace.sites) if (site.site.array, site.site.kind) == (array, "store")]
    samples = trace.samples
    return samples.index[np.isin(samples.site, numbers) & (samples.warp == 0)]


def _name(array, element, count=1) -> str:
    row, column = divmod(int(element), COLUMNS)
    return f"{array}[{row}, {column}]" if count == 1 else f"{array}[{row}, {column}:{column + count}]"


def _sentence(lane, sums, words, S, P, is_same) -> str:
    needed = join([f"`{_name(P, 2 * word, 2)}`" for word in words])
    held = join([f"`{_name(S, first)}`" for first in sums[::2]])
    end = "**It already has all eight of them.**" if is_same else "It does **not** hold these elements."
    return f"**Lane {lane}** holds {held}, each with its right neighbour. As left operand it needs {needed}. {end}"


def draw_still(figure, data, step):
    """Draw both accumulator tiles and the left operand; the lane's elements are filled."""
    figure.set_size_inches(9.4, 4.6)
    axes = figure.add_subplot()
    axes.set_axis_off()
    sums, words = (unpack(data[name])[:, step].astype(int) for name in ("sums", "words"))
    for n, element in enumerate(np.arange(ROWS * COLUMNS)):
        row, column = divmod(int(element), COLUMNS)
        for which, found in enumerate((sums, np.concatenate([2 * words, 2 * words + 1]))):
            x = column + (column >= 8 if which == 0 else 22)
            colour = COLOURS["CA"[which] if n in found else "cell"]
            axes.add_patch(Rectangle((x, row), 0.9, 0.9, facecolor=colour))
    for x, text in ((4, "accumulators, tile 0"), (13, "tile 1"), (30, "left operand")):
        stills.write(axes, x, -1, text, fontsize=8)
    axes.set(xlim=(-0.5, 39), ylim=(16.5, -2), aspect="equal")
    axes.set_title(heading(data, step), fontsize=8, loc="left", color=COLOURS["fg"], wrap=True)
