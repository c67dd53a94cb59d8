"""A convolution's lowered matrix: copies of each pixel, windows as columns, and tiles that implicit GEMM makes."""

from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack
from labkit.views.lowered_law import draw_law, law_data
from labkit.views.wording import block_name, check_trace, element_name, index_text, join

MOST_PIXELS, MOST_ELEMENTS = 1024, 16384
NOT_STORED = -2  # in place of an element's pixel; -1 is padding
MEMORY = "memory of the matrix, times the images"
BY = ("pixel", "output")


def lowering(
    lowered: Trace,
    tiled: Trace | None = None,
    shape: tuple[int, ...] | None = None,
    by: str = "pixel",
    meter_bytes: int = 0,
    matrix: str = "matrix",
    tile: str = "x_tile",
    setting: tuple[int, int] | None = None,
) -> View:
    """Show images and their lowered matrix: step through pixels, outputs, or tiles that are made instead.

    Parameters
    ----------
    lowered
        A run that stores the whole matrix and recorded all of its blocks.
    tiled
        A run of a tiled product that gathers the matrix from the images, with all blocks recorded: then the first
        step is the stored matrix, and each later step is a tile.
    shape
        Of the images, N C H W, where the kernel has them in fewer axes.
    by
        "pixel": a step is a pixel, with all its copies in the matrix. "output": a step is a column of the matrix, with
        its window in the images.
    meter_bytes
        Bytes that fill the meter, where pictures of several sizes share one; at least those of the larger array.
    matrix, tile
        The names of the matrix in the one kernel, and of its tile in the other.
    setting
        Stride and padding of a square filter: draws the size of the matrix, relative to the images, over the side of
        the filter for three strides, with this run as a dot.
    """
    check_trace("lowering", lowered)
    if tiled is not None:
        check_trace("lowering", tiled)
    if by not in BY:
        raise ValueError(f"Steps are by {BY[0]!r} or {BY[1]!r}, not by {by!r}.")
    lowered_matrix, images, stored = _copied_elements(lowered, matrix, "global")
    rows, columns = lowered_matrix.shape
    shape = tuple(shape or images.shape)
    pixels = prod(shape)
    if not 2 <= len(shape) <= 4 or pixels != prod(images.shape):
        raise ValueError(f"{images.name} does not hold images of N, C, H, W = {shape}: say which shape they have.")
    if pixels > MOST_PIXELS or rows * columns > MOST_ELEMENTS:
        raise ValueError(
            f"{pixels} pixels and a matrix of {rows} x {columns} are too many to show, which is beyond {MOST_PIXELS} "
            f"and {MOST_ELEMENTS} elements: take a smaller problem."
        )
    pixel_at = np.full(rows * columns, NOT_STORED)
    for _, elements, found in stored:
        pixel_at[elements] = found
    if (pixel_at == NOT_STORED).any():
        raise ValueError(f"Not all stores to {matrix} were recorded: record every block.")
    tiles, sides = ([], (0, 0)) if tiled is None else _tiles(tiled, tile, pixel_at.reshape(rows, columns))
    cells = pixel_at.reshape(rows, columns)
    if tiled is not None:
        mode, title = "tile", f"Never stored: `{tiled.kernel}` makes the matrix tile by tile"
        steps = _tile_steps(tiles, matrix, tile, lowered, pixel_at.size / pixels)
    elif by == "output":
        mode, title = "output", "Lowering: each window is a column"
        steps = _output_steps(cells, lowered_matrix, images.name, shape)
    else:
        mode, title = "pixel", f"Lowering: where `{lowered.kernel}` stores each pixel"
        steps = _pixel_steps(cells, lowered_matrix, images.name, shape)
    if setting is not None and mode == "pixel":  # whose numbers repeat the size at each step
        steps = steps._replace(labels=steps.labels[:1], values=[value[:1] for value in steps.values])
    data = {
        "say": steps.says,
        "start": steps.start,
        "mode": mode,
        "image": {"name": images.name, "planes": [prod(shape[:-3]), prod(shape[-3:-2])], "sides": list(shape[-2:])},
        "matrix": {"name": matrix, "rows": rows, "columns": columns, "breaks": _breaks(pixel_at, rows, columns, shape)},
        "place": pack(pixel_at),
        "tile": {"name": tile, "sides": list(sides), "corners": pack(np.array([one[2] for one in tiles], int).ravel())},
        "bytes": {
            "images": pixels * images.itemsize,
            "matrix": pixel_at.size * lowered_matrix.itemsize,
            "tile": prod(sides) * lowered_matrix.itemsize,
        },
        "law": None if setting is None else law_data(shape, rows, setting),
        "meter": max(meter_bytes, pixels * images.itemsize, pixel_at.size * lowered_matrix.itemsize),
        **stats_by_step([mode], [[name] for name in steps.names], steps.labels, steps.values),
    }
    return View("lowering", title, data, draw_still)


class Steps(NamedTuple):
    """The steps of a view: sentences, names, labels and values of the numbers, and the step shown first."""

    says: list[str]
    names: list[str]
    labels: list[str]
    values: list[list]
    start: int = 0


def _pixel_steps(cells, lowered_matrix, name, shape) -> Steps:
    pixels = prod(shape)
    copies = np.bincount(cells[cells >= 0], minlength=pixels).tolist()
    names = [f"{name}[{index_text(shape, pixel)}]" for pixel in range(pixels)]
    says = [
        _pixel_sentence(one, lowered_matrix, np.flatnonzero(cells.ravel() == pixel)) for pixel, one in enumerate(names)
    ]
    factor = f"{cells.size / pixels:.1f}"
    labels = ["copies of this pixel", MEMORY]
    return Steps(says, names, labels, [[count, factor] for count in copies], int(np.argmax(copies)))


def _output_steps(cells, lowered_matrix, name, shape) -> Steps:
    says, values = [], []
    for column, held in enumerate(cells.T):
        inside = held[held >= 0]
        ends = " to ".join(f"`{name}[{index_text(shape, pixel)}]`" for pixel in inside[[0, -1]]) if len(inside) else ""
        zeros = _with_zeros(len(held) - len(inside))
        says.append(
            f"Column {column} of `{lowered_matrix.name}` is the window of one output: **{len(inside)} pixels**{zeros}"
            f"{f', {ends}' if ends else ''}."
        )
        values.append([len(inside), f"{cells.size / prod(shape):.1f}"])
    return Steps(
        says, [f"column {column}" for column in range(cells.shape[1])], ["pixels in this column", MEMORY], values
    )


def _tile_steps(tiles, matrix, tile, lowered, factor) -> Steps:
    says = [f"`{lowered.kernel}` stores **all of `{matrix}`**. The next steps never do."]
    says += [_tile_sentence(one, matrix, tile) for one in tiles]
    names = ["all", *(f"block {block}, iteration {step + 1}" for block, step, *_ in tiles)]
    values = [[f"{factor:.1f}", 0], *(["0.0", number] for number in range(1, len(tiles) + 1))]
    return Steps(says, names, [MEMORY, "tiles made so far"], values)


def _copied_elements(trace, name, space):
    """Return an array that a kernel fills, the one that it is filled from, and the elements that each thread copied.

    Elements are (block, elements stored, elements that were loaded for them, or -1).
    """
    sites = [counted.site for counted in trace.sites]
    stores = [(site.array, site.space, site.kind) == (name, space, "store") for site in sites]
    last = max((site.line for site, stored in zip(sites, stores, strict=True) if stored), default=0)
    loads = [site for site in sites if (site.space, site.kind) == ("global", "load") and site.line <= last]
    if not loads:
        raise ValueError(
            f"`{trace.kernel}` does not fill a {space} array {name} from another one: say which one it fills."
        )
    images = max(loads, key=lambda site: site.line).array
    samples, threads = trace.samples, {}
    for row, site in enumerate(samples.site.tolist()):
        is_load = (sites[site].array, sites[site].kind) == (images, "load")
        if site < 0 or not (stores[site] or is_load):
            continue
        lanes = np.flatnonzero(samples.index[row] >= 0)
        for lane, element in zip(lanes.tolist(), samples.index[row][lanes].tolist(), strict=True):
            thread = int(samples.block[row]), int(samples.warp[row]) * WARP_LANES + lane
            progress = threads.setdefault(thread, {"loaded": -1, "stored": []})
            if is_load:
                progress["loaded"] = element
            else:
                progress["stored"].append((element, progress["loaded"]))
                progress["loaded"] = -1
    copies = [
        (block, *np.array(progress["stored"]).T)
        for (block, _), progress in sorted(threads.items())
        if progress["stored"]
    ]
    return trace.array(name), trace.array(images), copies


def _tiles(trace, name, pixel_at):
    """Return the tiles that blocks make (block, iteration, corner in the matrix, content), and their sides."""
    tile, _, stored = _copied_elements(trace, name, "shared")
    (height, width), tiles = tile.shape, {}
    for block, elements, found in stored:
        for step, (element, pixel) in enumerate(zip(elements, found, strict=True)):
            tiles.setdefault((block, step), np.full((height, width), -1)).flat[element] = pixel
    found_tiles = []
    for (block, step), content in sorted(tiles.items()):
        index = trace.samples.blocks[block]
        top, left = step * height, index[0] * width
        expected = pixel_at[top : top + height, left : left + width]
        if (content[: expected.shape[0], : expected.shape[1]] != expected).any():
            raise ValueError(
                f"Block {block_name(index)} does not fill {name} with a tile of the matrix: run one problem."
            )
        found_tiles.append((block_name(index), step, (top, left), expected))
    return found_tiles, (height, width)


def _pixel_sentence(name, matrix, places):
    ends = " to ".join(
        element_name(matrix, element) for element in dict.fromkeys(places[[0, -1]] if len(places) else ())
    )
    if not ends:
        return f"No window meets `{name}`: it is **nowhere** in the matrix."
    if len(places) == 1:
        return f"`{name}` is stored **once** in the matrix, at {ends}."
    return f"`{name}` is stored **{len(places)} times** in the matrix, from {ends}, each time under another tap."


def _tile_sentence(tile_data, matrix, tile):
    block, step, (top, left), held = tile_data
    rows, columns = held.shape
    different = len(np.unique(held[held >= 0]))
    where = f"rows {top} to {top + rows - 1}, columns {left} to {left + columns - 1}"
    return (
        f"Block {block}, iteration {step + 1}: it fills `{tile}` with {where}, from **{different} pixels**"
        f"{_with_zeros(int((held < 0).sum()))}. The rest of `{matrix}` does not exist."
    )


def _with_zeros(count) -> str:
    return f" and {count} zero{'s'[: count != 1]}" if count else ""


def _breaks(pixel_at, rows, columns, shape):
    """Return the rows before which another channel begins, and the columns before which another image begins."""
    plane, pixel_at = prod(shape[-2:]), pixel_at.reshape(rows, columns)
    return [_changes(pixel_at, plane), _changes(pixel_at.T, plane * prod(shape[-3:-2]))]


def _changes(lines, pixels):
    """Return the lines whose first pixel is in another group of `pixels` than the line before; zeros are skipped."""
    firsts = [(number, int(line[line >= 0][0]) // pixels) for number, line in enumerate(lines) if (line >= 0).any()]
    return [number for (_, before), (number, now) in pairwise(firsts) if now != before]


def state_at(data, step):
    """Return the marked pixels and matrix elements of a step, and a flag per element: does it exist by then?"""
    pixel_at, rows, columns = unpack(data["place"]), data["matrix"]["rows"], data["matrix"]["columns"]
    everything = np.ones(pixel_at.shape, bool)
    if data["mode"] == "pixel":
        return np.array([step]), np.flatnonzero(pixel_at == step), everything
    if data["mode"] == "tile" and step == 0:
        return np.array([], int), np.array([], int), everything
    marked = np.zeros((rows, columns), bool)
    if data["mode"] == "output":
        marked[:, step] = True
    else:
        (height, width), corners = data["tile"]["sides"], unpack(data["tile"]["corners"]).reshape(-1, 2)
        top, left = corners[step - 1]
        marked[top : top + height, left : left + width] = True
    elements = np.flatnonzero(marked)
    held = pixel_at[elements]
    exists = everything if data["mode"] == "output" else marked.ravel()
    return np.unique(held[held >= 0]), elements, exists


def draw_still(figure, data, step):
    """Draw the images and the matrix with marked elements, and the bytes of both."""
    stills.set_size_and_title(figure, data, step, 9.5, 4.6)
    pixels, elements, exists = state_at(data, step)
    pixel_at, image, matrix = unpack(data["place"]), data["image"], data["matrix"]
    (down, across), (rows, columns) = image["planes"], image["sides"]
    cell, full, hot = map(stills.rgb, ("cell", "A", "hot"))  # theme colours: grey, blue, vermilion

    def shade(numbers):
        share = (0.25 + 0.55 * (numbers % (rows * columns)) / (rows * columns))[:, None]
        return np.where((numbers >= 0)[:, None], share * full + (1 - share) * cell, cell)

    image_colours = shade(np.arange(down * across * rows * columns))
    image_colours[pixels] = hot
    planes = np.pad(
        image_colours.reshape(down, across, rows, columns, 3), [(0, 0)] * 2 + [(0, 1)] * 2 + [(0, 0)], constant_values=1
    )
    matrix_colours = np.where(exists[:, None], shade(pixel_at), cell)
    if exists.all():
        matrix_colours[elements] = hot
    if data["law"]:
        figure.set_size_inches(9.5, 6.4)
        grid = figure.subplot_mosaic([["x", "matrix"], [".", "law"]], width_ratios=[1, 2.4], height_ratios=[2, 1])
        left, right = grid["x"], grid["matrix"]
        draw_law(grid["law"], data["law"])
    else:
        left, right = figure.subplots(1, 2, width_ratios=[1, 2.4])
    planes = planes.transpose(0, 2, 1, 3, 4).reshape(down * (rows + 1), across * (columns + 1), 3)
    stills.show_cells(left, planes, image["name"], "A")
    held = ("images", "matrix") if exists.all() else ("images", "tile")
    sizes = join([f"{name} {data['bytes'][name]:,} bytes" for name in held])
    title = f"{matrix['name']}: {matrix['rows']} x {matrix['columns']}; {sizes}"
    stills.show_cells(right, matrix_colours.reshape(matrix["rows"], matrix["columns"], 3), title, "A")
