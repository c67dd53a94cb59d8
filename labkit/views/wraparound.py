"""Circular correlations of tiles: the outputs that wrap-around makes wrong, and the outputs that are kept."""

from math import prod

import numpy as np
from matplotlib.patches import Rectangle

from labkit.conv.fft.circular import Circular
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import check_trace


def wraparound(*runs: Circular | Trace) -> View:
    """Step through the filters of each run, and the tiles of its image.

    Parameters
    ----------
    *runs
        What `conv.circular` gave: one with many filters shows the stain growing, one with many tiles shows how it is
        cut off. Or the trace of a kernel whose first arguments are an image, a filter, and their T x T outputs.
    """
    if not runs:
        raise ValueError("There is nothing to show: give what `conv.circular(x, w)` returned.")
    circles = [run if isinstance(run, Circular) else _of_trace(run) for run in runs]
    steps = [
        step
        for number, (run, circle) in enumerate(zip(runs, circles, strict=True))
        for step in _steps(number, circle, is_own=run is not circle)
    ]
    numbers = [step.pop("numbers") for step in steps]
    labels = ["rows and columns of the filter", "stained outputs of this plane", "right ones", "kept in y so far"]
    data = {
        "say": [step.pop("say") for step in steps],
        "images": [pack(_share(run.x)) for run in circles],
        "steps": steps,
        **stats_by_step([], [[]] * len(steps), labels, numbers),
    }
    return View("wraparound", "Wrap-around: a circular correlation compared with the true one", data, draw_still)


def _of_trace(trace):
    """Return the one tile of the reader's own kernel."""
    check_trace("wraparound", trace)
    x, w, y = trace.outputs[:3]
    return Circular(x, w[None], y[None, None, None], y.shape, y[None])


def _steps(number, run, is_own):
    """Yield a step for each tile of each filter: its data, its sentence and its numbers.

    Of a kernel of the reader's own, which may pad with zeros, outputs are kept whose window begins on a pixel.
    """
    K, tiles_h, tiles_w, T, _ = run.planes.shape
    stains = run.stained()
    tiles = tiles_h * tiles_w
    for k, i, j in np.ndindex(K, tiles_h, tiles_w):
        R, S = run.taps(k)
        stained = stains[k, i, j]
        top, left = i * run.step[0], j * run.step[1]
        pixels = min(T, run.x.shape[0]), min(T, run.x.shape[1])
        clean = T - R + 1, T - S + 1
        whole = tuple(map(min, pixels, clean)) if is_own else (pixels[0] - R + 1, pixels[1] - S + 1)
        rows, columns = run.y.shape[1:] if tiles > 1 else whole
        kept = [min(run.step[0], rows - top), min(run.step[1], columns - left)] if tiles > 1 else [rows, columns]
        y = run.y[k] if tiles > 1 else run.planes[k, 0, 0, :rows, :columns]
        so_far = sum(
            min(run.step[0], rows - a * run.step[0]) * min(run.step[1], columns - b * run.step[1])
            for a, b in list(np.ndindex(tiles_h, tiles_w))[: i * tiles_w + j + 1]
        )
        so_far = so_far if tiles > 1 else prod(kept)
        wrong = int(stained.sum())
        yield {
            "image": number,
            "frame": [top, left, T],
            "filter": pack(_share(run.w[k, :R, :S])),
            "plane": pack(_share(run.planes[k, i, j])),
            "stained": pack(stained.astype(np.int8)),
            "y": pack(_share(y)),
            "y_stained": pack(_of_y(stains[k], run.step, y.shape).astype(np.int8)),
            "tile": [top, left, *kept],
            "step": list(run.step) if tiles > 1 else kept,
            "numbers": [f"{R} x {S}", wrong, T * T - wrong, so_far],
            "say": _sentence(R, S, T, stained, (i * tiles_w + j, tiles), (top, left), kept, so_far, y.size),
        }


def _of_y(stains, step, shape):
    """Return a flag per kept output, of tiles side by side: is it stained?"""
    rows, columns = step if stains.shape[:2] != (1, 1) else shape
    return np.block([list(row) for row in stains[:, :, :rows, :columns]])[: shape[0], : shape[1]]


def _sentence(R, S, T, stained, tile, corner, kept, so_far, all_of_y):
    wrong = int(stained.sum())
    is_border = not stained[: T - R + 1, : T - S + 1].any() and wrong == T * T - (T - R + 1) * (T - S + 1)
    last = [name if count == 2 else f"{count - 1} {name}s" for name, count in (("row", R), ("column", S)) if count > 1]
    where = f", those of the last {' and the last '.join(last)}" if is_border and last else ""
    which = f"**{wrong} of**" if wrong else "none of"
    if tile[1] == 1:
        return f"A filter of **{R} x {S}** taps stains {which} {T} x {T} outputs{where}."
    text = f"Tile {tile[0] + 1} of {tile[1]} begins in row {corner[0]} and column {corner[1]}. "
    text += f"The filter stains {which} its {T} x {T} outputs{where}; **{kept[0]} x {kept[1]} are kept** in `y`, "
    text += f"{int(stained[: kept[0], : kept[1]].sum()) or 'none'} of them stained."
    return text + (" Now `y` is whole." if so_far == all_of_y else "")


def _share(values):
    """Scale values to 0 to 1 for their colours; 1 for values that are not finite."""
    finite = np.isfinite(values)
    low, high = values.min(where=finite, initial=np.inf), values.max(where=finite, initial=-np.inf)
    return np.where(finite, (values - low) / (high - low), 1) if high > low else np.ones_like(values)


def draw_still(figure, data, step):
    """Draw the image with the tile's frame, the filter, the tile's plane with its stains, and the kept outputs."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.6)
    shown = data["steps"][step]
    top, left, T = shown["frame"]
    image, w, plane, y = (unpack(packed) for packed in (data["images"][shown["image"]], *map(shown.get, _PARTS)))
    stained = unpack(shown["stained"]).astype(bool)
    colours = _blend("C", plane)
    colours[stained] = _blend("hot", plane)[stained]
    seen = np.zeros(y.shape, bool)
    for a, b in np.ndindex(*y.shape):
        tile, here = (a // shown["step"][0], b // shown["step"][1]), (top // shown["step"][0], left // shown["step"][1])
        seen[a, b] = tile <= here
    y_colours = np.where(unpack(shown["y_stained"]).astype(bool)[..., None], _blend("hot", y), _blend("C", y))
    y_colours[~seen] = 1.0
    pictures = (
        ("x", "A", _blend("A", image)),
        ("w", "B", _blend("B", w)),
        ("circular", "C", colours),
        ("y", "C", y_colours),
    )
    axes_row = figure.subplots(1, 4, width_ratios=[3, 1, 2, 3])
    for axes, (name, colour, picture) in zip(axes_row, pictures, strict=True):
        stills.show_cells(axes, picture, name, colour)
    rows, columns = (min(T, side - first) for side, first in zip(image.shape, (top, left), strict=True))
    axes_row[0].add_patch(Rectangle((left - 0.5, top - 0.5), columns, rows, fill=False, color=COLOURS["ink"], lw=1.5))


_PARTS = ("filter", "plane", "y")


def _blend(colour, shares):
    return stills.tint(colour, 0.15 + 0.75 * shares)
