"""The algorithm that is ranked first for a convolution, by taps and channels, and the layers that were timed."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

from labkit import conv
from labkit.conv import records
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

SHOWN_RANKS = 5  # of a ranking
MB = 10**6
LADDER_STYLES = {  # a colour of the theme and a letter for each ladder; others have what is left
    "fft": ("A", "F"),
    "winograd": ("B", "W"),
    "implicit_gemm": ("C", "G"),
    "im2col": ("hot", "I"),
    "direct": ("dim", "D"),
    "tensor": ("ink", "T"),
}


def winners(
    *,
    size: int = 28,
    filters: int = 128,
    taps: Sequence[int] = (1, 3, 5, 7, 9, 11),
    channels: Sequence[int] = (512, 384, 256, 128, 64, 16, 3),
    batches: Sequence[int] = (1, 16, 64, 128),
    limits_mb: Sequence[int | None] = (0, 16, 128, None),
    format: str = "float32",
    machine: str | None = None,
) -> View:
    """Map the algorithms that `conv.heuristic` ranks first: filters of T x T taps from left to right, channels up.

    Sliders choose how many images there are and how much workspace may be taken. Rankings are predictions, each made by
    `conv.heuristic` for the problem of that cell. A cell is marked where layers with so many images, channels and taps
    were timed on a GPU, and whether the fastest was what is predicted for them: its panel tells which layers and times.
    They were timed with any workspace, and are marked where the slider says so.

    Parameters
    ----------
    size
        Rows and columns of an image, and with a padding of (T - 1) / 2 those of the outputs.
    filters
        How many there are.
    taps, channels, batches, limits_mb
        Columns, rows from the top, and positions of the sliders; a limit of None is no limit.
    format
        What operands hold.
    machine
        Whose records are shown, as `labkit.results` names it; the first of those there are if left out.
    """
    machine = machine or next(iter(records.machines()), None)
    data = _rankings(size, filters, taps, channels, batches, limits_mb, format)
    data["records"] = _recorded(machine, format, batches, taps, channels) if machine else []
    data["machine"] = machine
    return View("winners", "Winners: the algorithm ranked first, by filter and channels", data, draw_still)


def _rankings(size, filters, taps, channels, batches, limits_mb, format):
    """Return the predictions as JSON-ready data: algorithms in order, for each position of the sliders and cell."""
    names, shape = [], (len(batches), len(limits_mb), len(channels), len(taps), SHOWN_RANKS)
    order, times_ms, workspace_mb = np.full(shape, -1), np.full(shape, -1.0), np.full(shape, -1.0)
    rows = []
    for b, c, t, m in np.ndindex(len(batches), len(channels), len(taps), len(limits_mb)):
        place = b, m, c, t
        if m == 0:
            sizes = batches[b], channels[c], size, size, filters, taps[t], taps[t], 1, 1
            problem = conv.Forward(*sizes, *[taps[t] // 2] * 4)
            unlimited = conv.heuristic(problem, format)
            max_workspace = max((row.workspace_bytes for row in unlimited if not row.reason), default=0)
        limit = None if limits_mb[m] is None else limits_mb[m] * MB
        ranking = unlimited if limit is None or max_workspace <= limit else conv.heuristic(problem, format, limit)
        usable = [row for row in ranking if not row.reason][:SHOWN_RANKS]
        for rank, row in enumerate(usable):
            name = str(row.algorithm)
            names += [name] * (name not in names)
            order[*place, rank] = names.index(name)
            times_ms[*place, rank], workspace_mb[*place, rank] = row.time_ms, row.workspace_bytes / MB
        first = usable[0] if usable else None
        best = [str(first.algorithm), f"{first.time_ms:.3g}", f"{first.workspace_bytes / MB:,.1f}"] if first else []
        cell = [batches[b], limit_name(limits_mb[m]), channels[c], f"{taps[t]} x {taps[t]}"]
        rows.append([*cell, *(best or ["none", "", ""])])
    families = [name.partition("/")[0] for name in names]
    start = len(batches) - 2 if len(batches) > 2 else 0, len(limits_mb) - 1
    return {
        "say": f"{filters} filters over images of {size} x {size}: each cell names the algorithm that `conv.heuristic` "
        "**predicts** to be the fastest. Dots and rings mark layers that were **timed**.",
        "size": size,
        "filters": filters,
        "taps": list(taps),
        "channels": list(channels),
        "batches": list(batches),
        "limits": [limit_name(limit) for limit in limits_mb],
        "unlimited": limits_mb.index(None) if None in limits_mb else -1,
        "first": list(start),
        "names": names,
        "families": families,
        "looks": {family: ladder_style(family) for family in dict.fromkeys(families)},
        "order": pack(order.astype(int)),
        "times_ms": pack(times_ms),
        "workspace_mb": pack(workspace_mb),
        "table": table(
            ["images", "workspace", "channels", "taps", "ranked first", "predicted ms", "its workspace, MB"], rows
        ),
    }


def ladder_style(family: str) -> tuple[str, str]:
    """Return colour and letter of a ladder."""
    return LADDER_STYLES.get(family, ("ink", family[:1].upper()))


def limit_name(limit_mb: int | None) -> str:
    """Return a limit in words."""
    return "any workspace" if limit_mb is None else "no workspace" if limit_mb == 0 else f"up to {limit_mb} MB"


def _recorded(machine, format, batches, taps, channels):
    """Return measured layers that have a cell."""
    layers = []
    for measured_layer in records.measured(machine, format):
        problem = measured_layer.problem
        if problem.R != problem.S or problem.N not in batches or problem.C not in channels or problem.R not in taps:
            continue
        best = conv.heuristic(problem, format).best
        predicted = measured_layer.ours.get(str(best))
        cell = [batches.index(problem.N), channels.index(problem.C), taps.index(problem.R)]
        row = {"cell": cell, "layer": f"{problem.H} x {problem.W}, {problem.K} filters"}
        row |= {"fastest": measured_layer.fastest, "time_ms": measured_layer.ours[measured_layer.fastest].time_ms}
        layers.append(row | {"predicted": str(best), "predicted_ms": predicted.time_ms if predicted else None})
    return layers


def draw_still(figure, data, step):
    """Draw the map at the first position of the sliders."""
    batch, limit = data["first"]
    order, names = unpack(data["order"])[batch, limit], data["names"]
    stills.set_size_and_title(figure, data, step, 8.4, 4.4)
    axes = figure.subplots()
    marked = {}  # whether all were as predicted
    for record in data["records"]:
        if limit == data["unlimited"] and record["cell"][0] == batch:
            place = tuple(record["cell"][1:])
            marked[place] = marked.get(place, True) and record["predicted"] == record["fastest"]
    for c, t in np.ndindex(order.shape[:2]):
        number = order[c, t, 0]
        name = names[number] if number >= 0 else "none"
        colour, letter = ladder_style(name.partition("/")[0])
        square = {"facecolor": COLOURS[colour], "alpha": 0.35, "linewidth": 0}
        axes.add_patch(Rectangle((t - 0.48, c - 0.48), 0.96, 0.96, **square))
        text = f"{letter}\n{name.partition('/')[2]}" + {True: " ●", False: " ○", None: ""}[marked.get((c, t))]
        stills.write(axes, t, c, text, fontsize=8, color=COLOURS["fg"])
    axes.set_xlim(-0.5, order.shape[1] - 0.5)
    axes.set_ylim(order.shape[0] - 0.5, -0.5)
    axes.set_xticks(range(order.shape[1]), [f"{taps} x {taps}" for taps in data["taps"]], fontsize=8)
    axes.set_yticks(range(order.shape[0]), data["channels"], fontsize=8)
    axes.set_xlabel("taps", fontsize=8)
    axes.set_ylabel("channels", fontsize=8)
    stills.hide_marks(axes)
