"""A tile's products as a convolution defines them, compared with those of its transformed pixels (Winograd)."""

from collections.abc import Mapping, Sequence

import numpy as np

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack
from labkit.views.transformed import find_array, single_plane, tile_costs, tile_sides
from labkit.views.wording import check_trace, global_outputs

LABELS = [
    "products as defined",
    "products of transformed pixels",
    "additions of transforms",
    "error, relative to the largest output",
]
MAX_SINGLE_OUTPUTS = 4  # outputs of a tile that are shown one by one
PIXELS, TRANSFORMED, MULTIPLIED, DONE = range(4)  # how far a tile is


def collapse(
    direct: Trace, transformed: Mapping[str, Sequence[Trace]], errors: bool = True, at_end: bool = False
) -> View:
    """Step through the tiles of one image and one filter: the first one in its parts, then tile by tile.

    A choice above the picture changes the way in which the image is cut up.

    Parameters
    ----------
    direct
        A run of a kernel that computes the convolution as it is defined, without padding.
    transformed
        Runs of the same problem by transforms, by their names: the launches of each, whose arrays are x, w (and U of
        it), V, M and y, as in `labkit.conv.winograd`. U, V and M have the places of a tile as their first axis, V and M
        tiles as their last.
    errors
        Whether to tell how far off the outputs are.
    at_end
        Whether to show the last step first, for playgrounds whose point is the totals.
    """
    check_trace("collapse", direct)
    choices = [{"name": name, **_choice_data(direct, traces, errors)} for name, traces in transformed.items()]
    if not choices:
        raise ValueError("collapse compares a convolution with those by transforms: give the launches of one.")
    data = {**choices[0], "kept": choices, "chosen": 0}
    if at_end:
        data["start"] = len(choices[0]["say"]) - 1
    return View("collapse", "Products: as defined, and of transformed pixels", data, draw_still)


def _choice_data(direct, traces, errors) -> dict:
    """Return what is drawn of one choice of tile, as JSON-ready data."""
    x, y = (single_plane(find_array(traces, name)) for name in "xy")
    w = single_plane(find_array([direct], "w"))
    U, V, M = (find_array(traces, name) for name in "UVM")
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), w.shape)
    exact = np.einsum("pqrs,rs->pq", windows, w.astype(float))
    if exact.shape != y.shape:
        raise ValueError("The window has another number of positions than outputs: show a convolution without padding.")
    out, tile = tile_sides(len(U), w.shape)
    tiles_per_row = -(-y.shape[1] // out[1])
    count = -(-y.shape[0] // out[0]) * tiles_per_row
    additions = tile_costs(out, tile) if _has_launches(traces, "Vx", "My") else (0, 0)
    V, M = (array.reshape(len(U), -1)[:, :count].T for array in (V, M))
    loads = [counted for counted in direct.sites if (counted.site.array, counted.site.kind) == ("x", "load")]
    per_output = sum(counted.accesses for counted in loads) // y.size
    columns = [0, 1, *[2] * any(additions), *[3] * errors]  # of the columns of LABELS
    error = np.abs(y - exact) / np.abs(exact).max()
    says, stats, steps, before, worst = [], [], [], np.zeros(3, int), 0.0
    for number in range(count):
        first = number // tiles_per_row * out[0], number % tiles_per_row * out[1]
        tile_slices = tuple(slice(begin, begin + side) for begin, side in zip(first, out, strict=True))
        tile_error = error[tile_slices]
        tile_steps = _later_tile_steps if number else _first_tile_steps
        for stage, shown, counted, sentence in tile_steps(per_output, tile_error.size, len(U), additions):
            worst = max(worst, tile_error.max()) if stage == DONE else worst
            steps.append([number, shown, stage])
            numbers = [*(before + counted).tolist(), f"{worst:.0e}" if stage == DONE else "-"]
            stats.append([numbers[column] for column in columns])
            says.append(f"Tile {number + 1} of {count}: {sentence}")
        before = before + counted
    labels = [LABELS[column] for column in columns]
    return {
        "say": says,
        "steps": pack(np.array(steps)),
        "sides": {"x": x.shape, "w": w.shape, "y": y.shape, "out": out, "tile": tile},
        **{name: pack(array.ravel()) for name, array in {"x": x, "w": w, "y": y, "U": U, "V": V, "M": M}.items()},
        **stats_by_step(["tile"], [[number + 1] for number, *_ in steps], labels, stats),
    }


def _has_launches(traces, *names):
    """Say if launches of their own transform pixels, and products."""
    return {*names} <= {"".join(sorted(global_outputs(trace))) for trace in traces}


def _first_tile_steps(per_output, outputs, places, additions):
    """Yield the steps of the first tile: stage, outputs shown, products and additions so far, sentence."""
    yield PIXELS, 0, [0, 0, 0], f"**{places} pixels** are under the windows of **{outputs} outputs**."
    for shown in range(1, outputs + 1) if outputs <= MAX_SINGLE_OUTPUTS else [outputs]:
        subject = f"output {shown} takes" if outputs <= MAX_SINGLE_OUTPUTS else f"each of {outputs} outputs takes"
        sentence = f"As defined, {subject} **{per_output}**, a pixel times a tap; that makes **{shown * per_output}**."
        yield PIXELS, shown, [shown * per_output, 0, 0], sentence
    cost = f", by {additions[0]} additions" if any(additions) else ""
    yield (
        *(TRANSFORMED, outputs, [outputs * per_output, 0, additions[0]]),
        f"By transforms, its pixels become {places} sums of pixels, V{cost}.",
    )
    yield (
        *(MULTIPLIED, outputs, [outputs * per_output, places, additions[0]]),
        f"Each sum times the number of U, the transformed filter, in the same place: **{places} products**, M.",
    )
    ((*_, counted, _),) = _later_tile_steps(per_output, outputs, places, additions)
    yield (
        *(DONE, outputs, counted),
        f"Sums of these products are the same {outputs} outputs: **{places} in place of {outputs * per_output}**.",
    )


def _later_tile_steps(per_output, outputs, places, additions):
    """Yield the only step of a later tile."""
    counted = [outputs * per_output, places, sum(additions)]
    yield DONE, outputs, counted, f"{outputs * per_output} products as defined, **{places}** of transformed pixels."


def draw_still(figure, data, step):
    """Draw the image and its tile, the products of both algorithms, and the outputs at a step."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.4)
    panels = colour_panels(data, step)
    axes_row = figure.subplots(1, len(panels), width_ratios=[max(cells.shape[:2]) for cells in panels.values()])
    for axes, (title, cells) in zip(axes_row, panels.items(), strict=True):
        stills.show_cells(axes, cells, title, lines=0.6)


def colour_panels(data, step):
    """Return each panel of the still picture as colours, by title."""
    colours = {name: stills.rgb(name) for name in ("cell", "A", "C", "hot")}
    sides, (number, shown, stage) = data["sides"], unpack(data["steps"])[step].tolist()
    (H, W), (P, Q), (R, S), (rows, columns), tile = (sides[name] for name in ("x", "y", "w", "out", "tile"))
    tiles_per_row = -(-Q // columns)
    pixels = np.tile(stills.tint("A", 0.35), (H, W, 1))
    row, column = number // tiles_per_row * rows, number % tiles_per_row * columns
    pixels[row : row + tile[0], column : column + tile[1]] = colours["hot"]
    is_done = np.arange(-(-P // rows) * tiles_per_row).reshape(-1, tiles_per_row) < number + (stage == DONE)
    outputs = np.where(np.kron(is_done, np.ones((rows, columns)))[:P, :Q, None], colours["C"], colours["cell"])
    shown_outputs = np.indices((rows, columns)) + np.array([row, column])[:, None, None]
    shown_outputs = (shown_outputs[0] < P) & (shown_outputs[1] < Q)
    shown_outputs &= np.cumsum(shown_outputs).reshape(shown_outputs.shape) <= shown
    direct = np.where(np.kron(shown_outputs, np.ones((R, S)))[..., None], colours["hot"], colours["cell"])
    stage_colours = {PIXELS: "cell", TRANSFORMED: "A", MULTIPLIED: "hot", DONE: "hot"}
    transformed = np.tile(colours[stage_colours[stage]], (*tile, 1))
    return {"x": pixels, "as defined": direct, "transformed": transformed, "y": outputs}
