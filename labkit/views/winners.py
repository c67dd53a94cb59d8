"""The algorithm that is ranked first for a convolution, by taps and channels, and the layers that were timed."""

from collections.abc import Sequence
from math import log

import numpy as np
from matplotlib.patches import Rectangle

from labkit import conv
from labkit.conv import records
from labkit.conv.interface.choices import limit_workspace
from labkit.formats import FP32
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

SHOWN_RANKS = 5  # of a ranking
MB = 10**6
SIDE_FACTOR = 1.2  # at most, from the side of a timed layer's image to that of its cell
TIE = 0.01  # a loss below it is none
CHANNELS_LAST = "NHWC"  # the layout that kernels on tensor cores take
LADDER_STYLES = {  # a colour of the theme and a letter for each ladder; others have what is left
    "fft": ("A", "F"),
    "winograd": ("B", "W"),
    "implicit_gemm": ("C", "G"),
    "im2col": ("ink", "I"),
    "direct": ("dim", "D"),
    "tensor": ("D", "T"),
}


def winners(
    *,
    sides: Sequence[int] = (7, 14, 28, 56),
    filters: int = 128,
    taps: Sequence[int] = (1, 3, 5, 7, 9),
    channels: Sequence[int] = (512, 384, 256, 128, 64, 16),
    batches: Sequence[int] = (1, 16, 64),
    limits_mb: Sequence[int | None] = (0, None),
    formats: Sequence[str] = ("float32", "bfloat16"),
    machine: str | None = None,
) -> View:
    """Map the algorithms that `conv.heuristic` ranks first: filters of T x T taps from left to right, channels up.

    Controls choose how many images there are, their side, how much workspace may be taken, and the format. Rankings are
    predictions, each made by `conv.heuristic` for the problem of that cell, with 16 bits for channels last; a format
    other than float32 shows how much faster it is. A cell is marked where layers with equal numbers of images,
    channels and taps, and about that side, were timed on a GPU: by what the algorithm predicted for them lost to the
    fastest. Where another family is predicted for them than for the cell, since they have other sizes, the mark is a
    ring. They were timed with any workspace, and are marked where that is chosen.

    Parameters
    ----------
    sides
        Rows and columns of an image, and with a padding of (T - 1) / 2 those of the outputs.
    filters
        How many there are.
    taps, channels, batches, limits_mb, formats
        Columns, rows from the top, and positions of the controls; a limit of None is no limit. The first format is the
        one that others are compared with. TF32 is added where it was timed.
    machine
        Whose records are shown, as `labkit.results` names it; the first of those there are if left out.
    """
    machine = machine or next(iter(records.machines()), None)
    axes = {"sides": sides, "batches": batches, "channels": channels, "taps": taps}
    data = _rankings(filters, formats, limits_mb, **axes)
    data["records"] = [found for f in formats for found in _recorded(machine, f, **axes)] if machine else []
    order = unpack(data["order"])
    for record in data["records"]:
        side, batch, channel, tap = record["cell"]
        number = order[formats.index(record["format"]), side, batch, data["unlimited"], channel, tap, 0]
        record["is_alike"] = record["predicted"].partition("/")[0] == data["families"][number]
    data["tf32"] = _timed_in_tf32(machine, **axes) if machine else []
    data["machine"] = machine
    return View("winners", "Winners: the algorithm ranked first, by filter and channels", data, draw_still)


def _rankings(filters, formats, limits_mb, sides, batches, channels, taps):
    """Return the predictions as JSON-ready data: algorithms in order, for each position of the controls and cell."""
    names: dict[str, int] = {}
    shape = [len(axis) for axis in (formats, sides, batches, limits_mb, channels, taps)]
    order = np.full((*shape, SHOWN_RANKS), -1)
    times_ms, workspace_mb = np.full(order.shape, -1.0), np.full(order.shape, -1.0)
    for f, h, b, c, t in np.ndindex(*shape[:3], *shape[4:]):
        sizes = batches[b], channels[c], sides[h], sides[h], filters, taps[t], taps[t], 1, 1
        layout = "NCHW" if formats[f] == FP32.name else CHANNELS_LAST
        unlimited = conv.heuristic(conv.Forward(*sizes, *[taps[t] // 2] * 4, layout=layout), formats[f])
        for m, limit_mb in enumerate(limits_mb):
            ranking = unlimited if limit_mb is None else limit_workspace(unlimited, limit_mb * MB)
            for rank, row in enumerate([row for row in ranking if not row.reason][:SHOWN_RANKS]):
                place = f, h, b, m, c, t, rank
                order[place] = names.setdefault(str(row.algorithm), len(names))
                times_ms[place], workspace_mb[place] = row.time_ms, row.workspace_bytes / MB
    families = [name.partition("/")[0] for name in names]
    firsts = [families[number] for number in np.unique(order[..., 0]) if number >= 0]
    limits = list(map(limit_name, limits_mb))
    return {
        "say": f"Each cell is a layer with {filters} filters, and names the algorithm that `conv.heuristic` "
        "**predicts** to be the fastest.",
        "sides": list(sides),
        "taps": list(taps),
        "channels": list(channels),
        "batches": list(batches),
        "limits": limits,
        "formats": list(formats),
        "unlimited": limits_mb.index(None) if None in limits_mb else -1,
        "first": [0, max(0, len(sides) - 2), len(batches) - 1, len(limits_mb) - 1],
        "names": list(names),
        "families": families,
        "looks": {family: ladder_style(family) for family in dict.fromkeys(firsts)},
        "order": pack(order.astype(int)),
        "times_ms": pack(times_ms),
        "workspace_mb": pack(workspace_mb),
        "table": table(
            ["format", "side", "images", "workspace", "channels", *(f"{side} x {side}" for side in taps)],
            [
                [formats[f], sides[h], batches[b], limits[m], channels[c]]
                + [_cell(order[f, h, b, m, c, t], times_ms[f, h, b, m, c, t], list(names)) for t in range(len(taps))]
                for f, h, b, m, c in np.ndindex(*shape[:5])
            ],
        ),
    }


def _cell(order, times_ms, names) -> str:
    return f"{names[order[0]]}, {times_ms[0]:.3g} ms" if order[0] >= 0 else "none"


def ladder_style(family: str) -> tuple[str, str]:
    """Return colour and letter of a ladder."""
    return LADDER_STYLES.get(family, ("ink", family[:1].upper()))


def limit_name(limit_mb: int | None) -> str:
    """Return a limit in words."""
    return "any workspace" if limit_mb is None else "no workspace" if limit_mb == 0 else f"up to {limit_mb} MB"


def find_cell(problem, sides, batches, channels, taps) -> list[int] | None:
    """Return the place of a layer in the map, or None: its side may differ a little."""
    is_square = problem.R == problem.S and problem.H == problem.W
    if not is_square or problem.N not in batches or problem.C not in channels or problem.R not in taps:
        return None
    side = min(sides, key=lambda side: abs(log(side / problem.H)))
    if max(side / problem.H, problem.H / side) > SIDE_FACTOR:
        return None
    return [sides.index(side), batches.index(problem.N), channels.index(problem.C), taps.index(problem.R)]


def _recorded(machine, format, **axes):
    """Return measured layers that have a cell."""
    layers = []
    for measured in records.measured(machine, format):
        cell = find_cell(measured.problem, **axes)
        if cell is None:
            continue
        first = next(row for row in conv.heuristic(measured.problem, format) if not row.reason)
        best = str(first.algorithm)
        fastest_ms = measured.ours[measured.fastest].time_ms
        predicted_ms = measured.ours[best].time_ms if best in measured.ours else None
        loss = None if predicted_ms is None else predicted_ms / fastest_ms - 1
        row = {"format": format, "cell": cell, "layer": layer_name(measured.problem), "fastest": measured.fastest}
        row |= {"time_ms": fastest_ms, "predicted": best, "predicted_ms": predicted_ms, "estimate_ms": first.time_ms}
        layers.append(row | {"loss": loss if loss is None or loss >= TIE else 0})
    return layers


def _timed_in_tf32(machine, **axes):
    """Return layers of any side on which a library was timed in TF32, with our fastest time in float32."""
    ours = {one.problem: one for one in records.measured(machine)}
    layers = []
    for problem, (library, time_ms) in records.timed_in_tf32(machine).items():
        cell, one = find_cell(problem, **axes | {"sides": [problem.H]}), ours[problem]
        if cell is not None:
            fastest_ms = one.ours[one.fastest].time_ms
            row = {"cell": cell, "layer": layer_name(problem), "library": library, "time_ms": time_ms}
            layers.append(row | {"fastest": one.fastest, "fastest_ms": fastest_ms})
    return layers


def layer_name(problem) -> str:
    """Return the sizes of a layer that its cell does not tell."""
    return f"{problem.H} x {problem.W}, {problem.K} filters"


def draw_still(figure, data, step):
    """Draw the map at the first position of the controls."""
    f, h, b, m = data["first"]
    order, names = unpack(data["order"])[f, h, b, m], data["names"]
    stills.set_size_and_title(figure, data, step, 8.4, 4.4)
    axes = figure.subplots()
    losses, others = {}, set()  # the largest of each cell, and cells with a record of another family
    for record in data["records"]:
        is_shown = record["cell"][:2] == [h, b] and record["format"] == data["formats"][f]
        place = tuple(record["cell"][2:])
        if m == data["unlimited"] and is_shown and not record["is_alike"]:
            others.add(place)
        elif m == data["unlimited"] and is_shown and record["loss"] is not None:
            losses[place] = max(losses.get(place, 0), record["loss"])
    for c, t in np.ndindex(order.shape[:2]):
        number = order[c, t, 0]
        name = names[number] if number >= 0 else "none"
        colour, letter = ladder_style(name.partition("/")[0])
        square = {"facecolor": COLOURS[colour], "alpha": 0.35, "linewidth": 0}
        axes.add_patch(Rectangle((t - 0.48, c - 0.48), 0.96, 0.96, **square))
        loss = losses.get((c, t))
        mark = (" ○" if (c, t) in others else "") if loss is None else f" +{loss:.0%}" if loss else " ●"
        stills.write(axes, t, c, f"{letter}\n{name.partition('/')[2]}{mark}", fontsize=8, color=COLOURS["fg"])
    axes.set_xlim(-0.5, order.shape[1] - 0.5)
    axes.set_ylim(order.shape[0] - 0.5, -0.5)
    axes.set_xticks(range(order.shape[1]), [f"{taps} x {taps}" for taps in data["taps"]], fontsize=8)
    axes.set_yticks(range(order.shape[0]), data["channels"], fontsize=8)
    axes.set_xlabel("taps", fontsize=8)
    axes.set_ylabel("channels", fontsize=8)
    stills.hide_marks(axes)
