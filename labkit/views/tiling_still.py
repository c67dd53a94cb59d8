"""The tiling view as a still picture, drawn from the same data."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit.views import stills
from labkit.views.base import COLOURS, unpack

MOST_RULED = 8192  # elements with lines between them


def draw_still(figure, data, step):
    """Draw every array at one step: elements touched so far, filled in shared memory, and touched now.

    A frame marks the element that `data["marked"]` names (array, flat index), if it does.
    """
    panels = data["panels"]
    touched, filled, reads, now = _replay(data, step)
    everywhere = _replay(data, len(data["phases"]) - 1)[0] if panels else []
    stills.set_size_and_title(figure, data, step, 9.5, 4.6)
    for axes, which in zip(_places(figure, data), range(len(panels)), strict=True):
        panel = panels[which]
        cells = np.tile(stills.rgb("cell"), (panel["rows"] * panel["columns"], 1))

        def tint(mask, strength, colour=panel["role"], cells=cells):
            cells[: len(mask)][mask] = stills.tint(colour, strength)

        if panel["space"] == "global":
            tint(everywhere[which], 0.15)
            tint(touched[which], 0.9 if panel["role"] == "C" else 0.4)
        else:
            tint(filled[which], 0.5)
        tint(now[which] > 0, 0.55, "hot")
        tint(now[which] > 1, 1, "hot")
        axes.imshow(cells.reshape(panel["rows"], panel["columns"], 3), interpolation="nearest")
        if panel["columns"] <= 64 and panel["size"] <= MOST_RULED:
            lines = {"color": "white", "linewidth": 0.4}  # a grid of ticks takes ten times as long
            axes.hlines(np.arange(panel["rows"] + 1) - 0.5, -0.5, panel["columns"] - 0.5, **lines)
            axes.vlines(np.arange(panel["columns"] + 1) - 0.5, -0.5, panel["rows"] - 0.5, **lines)
        _mark(axes, panel, *data.get("marked", ("", 0)))
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_title(panel["name"], fontsize=9, color=COLOURS["fg"], loc="left", weight="bold")
        if panel["space"] == "shared" and panel["columns"] <= 16:
            for element in np.flatnonzero(reads[which]):
                at = element % panel["columns"], element // panel["columns"]
                stills.write(axes, *at, f"{reads[which][element]}", fontsize=5)
    if data["stats"]["values"]:
        pairs = zip(data["stats"]["values"][step], data["stats"]["labels"], strict=True)
        figure.supxlabel("   ·   ".join(f"{value:,} {label}" for value, label in pairs), fontsize=9)


def _mark(axes, panel, array, element):
    """Frame an element, widely enough to be seen in a large array."""
    if panel["name"] == array:
        width, height = (max(1.6, panel[side] / 30) for side in ("columns", "rows"))
        x, y = element % panel["columns"], element // panel["columns"]
        style = {"fill": False, "edgecolor": COLOURS["fg"], "linewidth": 1.4, "clip_on": False}
        axes.add_patch(Rectangle((x - width / 2, y - height / 2), width, height, **style))


def _places(figure, data):
    """Return axes for each panel: A left, B above, C where they meet; the others to the right."""
    panels = data["panels"]
    if not data["product"]:
        return list(np.ravel(figure.subplots(1, len(panels)))) if panels else []
    A, B = panels[0], panels[1]
    others = len(panels) - 3
    widths = [A["columns"], B["columns"], *[(A["columns"] + B["columns"]) / 3] * others]
    grid = figure.add_gridspec(2, 2 + others, width_ratios=widths, height_ratios=[B["rows"], A["rows"]])
    spots = [grid[1, 0], grid[0, 1], grid[1, 1], *(grid[0, 2 + i] for i in range(others))]
    return [figure.add_subplot(spot) for spot in spots]


def _replay(data, step):
    """Return per panel: elements touched, filled, their reads, and those touched now (2: by the picked warp)."""
    sizes, dtypes = [panel["size"] for panel in data["panels"]], (bool, bool, int, int)
    touched, filled, reads, now = ([np.zeros(size, dtype) for size in sizes] for dtype in dtypes)
    offsets, sites, warps, index = (unpack(data[name]) for name in ("offsets", "site", "warp", "index"))
    for row in range(offsets[step + 1] if len(offsets) > 1 else 0):
        if sites[row] < 0:
            continue
        site = data["sites"][sites[row]]
        which, lanes = site["panel"], index[row][index[row] >= 0]
        touched[which][lanes] = True
        if site["kind"] == "load":
            np.add.at(reads[which], lanes, 1)
        else:
            filled[which][lanes] = True
            reads[which][lanes] = 0
        if row >= offsets[step]:
            now[which][lanes] = np.maximum(now[which][lanes], 2 if warps[row] == data["picked"] else 1)
    return touched, filled, reads, now
