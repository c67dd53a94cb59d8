"""A convolution's lowered matrix: the places of each pixel, and the tiles that implicit GEMM makes of it."""

from itertools import pairwise
from math import prod

import numpy as np

from labkit.trace import WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack
from labkit.views.wording import block_name, check_trace, element_name, index_text, join

MOST_PIXELS, MOST_ELEMENTS = 1024, 16384
NOT_STORED = -2  # in place of an element's pixel; -1 is padding
LABELS = ("copies of this pixel", "memory of the matrix, times the images", "tiles made so far")


def lowering(
    lowered: Trace,
    tiled: Trace | None = None,
    shape: tuple[int, ...] | None = None,
    matrix: str = "matrix",
    tile: str = "x_tile",
) -> View:
    """Step through the pixels of the images: each lights up wherever the lowered matrix holds it.

    Parameters
    ----------
    lowered
        A run that stores the whole matrix and recorded all of its blocks.
    tiled
        A run of a tiled product that gathers the matrix from the images, with all blocks recorded: then the tiles
        that it makes follow the pixels.
    shape
        Of the images, N C H W, where the kernel has them in fewer axes.
    matrix, tile
        The names of the matrix in the one kernel, and of its tile in the other.
    """
    check_trace("lowering", lowered)
    if tiled is not None:
        check_trace("lowering", tiled)
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
    copies = np.bincount(pixel_at[pixel_at >= 0], minlength=pixels).tolist()
    stats = [[count, f"{pixel_at.size / pixels:.1f}", 0] for count in copies]
    stats += [["\u2013", "0.0", number] for number in range(1, len(tiles) + 1)]
    labels = LABELS if tiles else LABELS[:2]
    values = [numbers[: len(labels)] for numbers in stats]
    names = [f"{images.name}[{index_text(shape, pixel)}]" for pixel in range(pixels)]
    says = [
        _pixel_sentence(name, lowered_matrix, np.flatnonzero(pixel_at == pixel)) for pixel, name in enumerate(names)
    ]
    says += [_tile_sentence(one, matrix, tile) for one in tiles]
    names += [f"block {block}, round {step + 1}" for block, step, *_ in tiles]
    not_stored = f", and `{tiled.kernel}` does not" if tiles and tiled is not None else ""
    data = {
        "say": says,
        "start": int(np.argmax(copies)),
        "image": {"name": images.name, "planes": [prod(shape[:-3]), prod(shape[-3:-2])], "sides": list(shape[-2:])},
        "matrix": {"name": matrix, "rows": rows, "columns": columns, "breaks": _breaks(pixel_at, rows, columns, shape)},
        "place": pack(pixel_at),
        "tile": {"name": tile, "sides": list(sides), "corners": pack(np.array([one[2] for one in tiles], int).ravel())},
        "bytes": {
            "images": pixels * images.itemsize,
            "matrix": pixel_at.size * lowered_matrix.itemsize,
            "tile": prod(sides) * lowered_matrix.itemsize,
        },
        **stats_by_step(["step"], [[name] for name in names], labels, values),
    }
    return View("lowering", f"Lowering: what `{lowered.kernel}` stores{not_stored}", data, draw_still)


def _copied_elements(trace, name, space):
    """Return an array that a kernel fills, the one that it is filled from, and the elements that each thread copied.

    Elements are (block, elements stored, elements that were loaded for them, or -1).
    """
    sites = [counted.site for counted in trace.sites]
    stores = [(site.array, site.space, site.kind) == (name, space, "store") for site in sites]
    last = max((site.line for site, stored in zip(sites, stores, strict=True) if stored), default=0)
    loads = [site for site in sites if (site.space, site.kind) == ("global", "load") and site.line <= last]
    if not loads:
        raise ValueError(f"`{trace.kernel}` fills no {space} array {name} from another one: say which one it fills.")
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
                f"What block {block_name(index)} puts into {name} is no tile of the matrix: run one problem."
            )
        found_tiles.append((block_name(index), step, (top, left), expected))
    return found_tiles, (height, width)


def _pixel_sentence(name, matrix, places):
    ends = " to ".join(
        element_name(matrix, element) for element in dict.fromkeys(places[[0, -1]] if len(places) else ())
    )
    if not ends:
        return f"No window meets `{name}`: it stands **nowhere** in the matrix."
    if len(places) == 1:
        return f"`{name}` stands at **1 place** of the matrix, {ends}."
    return f"`{name}` stands at **{len(places)} places** of the matrix, {ends}, each under another tap."


def _tile_sentence(tile_data, matrix, tile):
    block, step, (top, left), held = tile_data
    rows, columns = held.shape
    different, zeros = len(np.unique(held[held >= 0])), int((held < 0).sum())
    where = f"rows {top} to {top + rows - 1}, columns {left} to {left + columns - 1}"
    with_zeros = f" and {zeros} zero{'s'[: zeros != 1]}" if zeros else ""
    return (
        f"Block {block}, round {step + 1}: it fills `{tile}` with {where}, from **{different} pixels**{with_zeros}. "
        f"The rest of `{matrix}` does not exist."
    )


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
    pixel_at, pixels = unpack(data["place"]), len(data["say"]) - len(unpack(data["tile"]["corners"])) // 2
    if step < pixels:
        return np.array([step]), np.flatnonzero(pixel_at == step), np.ones(pixel_at.shape, bool)
    (height, width), columns = data["tile"]["sides"], data["matrix"]["columns"]
    top, left = unpack(data["tile"]["corners"]).reshape(-1, 2)[step - pixels]
    inside = np.zeros((data["matrix"]["rows"], columns), bool)
    inside[top : top + height, left : left + width] = True
    held = pixel_at[inside.ravel()]
    return np.unique(held[held >= 0]), np.flatnonzero(inside.ravel()), inside.ravel()


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
    left, right = figure.subplots(1, 2, width_ratios=[1, 2.4])
    planes = planes.transpose(0, 2, 1, 3, 4).reshape(down * (rows + 1), across * (columns + 1), 3)
    stills.show_cells(left, planes, image["name"], "A")
    held = ("images", "matrix") if exists.all() else ("images", "tile")
    sizes = join([f"{name} {data['bytes'][name]:,} bytes" for name in held])
    title = f"{matrix['name']}: {matrix['rows']} x {matrix['columns']}; {sizes}"
    stills.show_cells(right, matrix_colours.reshape(matrix["rows"], matrix["columns"], 3), title, "A")
