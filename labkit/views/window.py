"""A convolution's window as it moves over the image: the pixels that each thread loads, and how often."""

from functools import partial
from itertools import accumulate
from math import prod

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import WARP_LANES, ThreadId, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import check_trace, element_name, join

MOST_THREADS = 2000
TILE_STYLES = ((COLOURS["B"], "-"), (COLOURS["C"], "--"), ("#b8578f", "-."), (COLOURS["ink"], ":"))  # one per tile
MOST_ACROSS = 4  # planes next to one another, where there is one line of them
MOST_TAPS = 64  # that the first window is shown with, one by one
ROLES = {"x": "A", "w": "B", "y": "C"}  # the colour of each


def window(trace: Trace, image: str = "x", filters: str = "w", outputs: str = "y", most: int | None = None) -> View:
    """Step through the threads that were recorded, in their order: what each loads of the image, and computes.

    The first window is walked tap by tap. Pixels are coloured by how often they have been loaded from global memory.
    Padding is drawn as zeros around the image. If several blocks load tiles, each tile has an outline of its own.

    Parameters
    ----------
    trace
        A run that recorded the blocks to show.
    image, filters, outputs
        The arrays' names in the kernel. Their last two axes are rows and columns, those before them are planes. A
        stencil has no filters.
    most
        Loads at which a pixel has the full colour, for pictures that share a scale. Loads of the busiest pixel if left
        out, or those that the filters' taps would make.
    """
    check_trace("window", trace)
    names = {"x": image, "w": filters, "y": outputs}
    panels = {role: _panel(trace, name) for role, name in names.items() if role != "w" or _has(trace, name)}
    threads, by_thread = _accesses(trace, names)
    if not sum(len(loads) for loads, *_ in by_thread):
        raise ValueError(f"No thread that was recorded loads {image} from global memory: record a block that does.")
    geometry = _fit_windows(*(trace.array(names[role]) for role in "xwy"), by_thread) if "w" in panels else None
    if geometry:
        panels["x"]["rim"] = geometry["rim"]
    steps = [step for number in range(len(threads)) for step in _steps(trace, threads, by_thread, number)]
    says = _sentences(trace, names, steps, bool(geometry and any(geometry["rim"])))
    says[-1] += " The view ends here; more threads were recorded." if len(threads) == MOST_THREADS else ""
    touched = {role: np.array([element for step in steps for element in step[role]], np.int64) for role in panels}
    counts = np.zeros(prod(trace.array(image).shape), np.int64)
    stats = []
    for step in steps:
        np.add.at(counts, step["x"], 1)
        numbers = [int(counts.sum()), int((counts > 0).sum()), int(counts.max())]
        stats.append([*numbers, f"{counts.sum() / max(1, (counts > 0).sum()):.1f}"])
    labels = ["loads of pixels", "different pixels", "loads of the busiest pixel", "loads of a pixel, on average"]
    if trace.counters.shared_loads:
        labels.append("reads of shared memory")
        for numbers, reads in zip(stats, accumulate(step["shared"] for step in steps), strict=True):
            numbers.append(reads)
    data = {
        "say": says,
        "panels": panels,
        **{role: pack(elements) for role, elements in touched.items()},
        "ends": {role: pack(np.cumsum([len(step[role]) for step in steps])) for role in panels},
        "most": most or max(int(counts.max()), _window_size(trace, filters)),
        "shared": bool(trace.counters.shared_loads),
        "frames": geometry and pack(geometry["frames"][[step["number"] for step in steps]]),
        "tiles": _tiles(trace, threads, by_thread, panels["x"]) if trace.counters.shared_loads else [],
        **stats_by_step(["thread"], [[step["thread"]] for step in steps], labels, stats),
    }
    return View("window", f"Window: the loads of `{image}` by `{trace.kernel}`", data, draw_still)


def _has(trace, name):
    return any((info.name, info.space) == (name, "global") for info in trace.arrays)


def _panel(trace, name):
    """Return an array's layout on the screen: planes below and next to one another, each of rows and columns."""
    if not _has(trace, name):
        there = join([info.name for info in trace.arrays if info.space == "global"])
        raise ValueError(f"The kernel has no array {name}, it has {there}: say which is the image, and the outputs.")
    shape = trace.array(name).shape
    if len(shape) < 2:
        raise ValueError(f"{name} has one axis, and a window walks over rows and columns: show an image.")
    planes, sides = [prod(shape[:-3]), prod(shape[-3:-2])], list(shape[-2:])
    if min(planes) == 1 and max(planes) > MOST_ACROSS:  # a long line of planes is folded into several
        across = max(count for count in range(1, MOST_ACROSS + 1) if max(planes) % count == 0)
        planes = [max(planes) // across, across]
    return {"name": name, "planes": planes, "sides": sides, "rim": [0, 0, 0, 0]}


def _accesses(trace, names):
    """Return recorded threads with loads of x or stores of y, and elements of each: x, w, y and shared memory."""
    roles = {("load", names["x"]): 0, ("load", names["w"]): 1, ("store", names["y"]): 2, ("atomic", names["y"]): 2}
    by_owner = {}
    samples = trace.samples
    for site_number, counted in enumerate(trace.sites):
        site = counted.site
        role = roles.get((site.kind, site.array)) if site.space == "global" else None
        if role is None and (site.space, site.kind) != ("shared", "load"):
            continue
        rows = np.flatnonzero(samples.site == site_number)
        row, lane = np.nonzero(samples.index[rows] >= 0)
        elements = samples.index[rows][row, lane]
        owners = zip(samples.block[rows][row].tolist(), (samples.warp[rows][row] * WARP_LANES + lane).tolist())
        for owner, when, element in zip(owners, rows[row].tolist(), elements.tolist(), strict=True):
            accesses = by_owner.setdefault(owner, ([], [], [], []))
            accesses[3 if role is None else role].extend((when, element + k) for k in range(site.elements))
    threads = sorted(owner for owner, accesses in by_owner.items() if accesses[0] or accesses[2])[:MOST_THREADS]
    return threads, [tuple([element for _, element in sorted(one)] for one in by_owner[owner]) for owner in threads]


def _steps(trace, threads, by_thread, number):
    """Yield the steps of one thread: one per tap if it is the first and multiplies what it loads, else one."""
    pixels, taps, results, shared = by_thread[number]
    block, thread = threads[number]
    name = _thread_name(trace, block, thread)
    if number or shared or len(pixels) != len(taps) or not 1 < len(taps) <= MOST_TAPS:
        yield {
            "number": number,
            "thread": name,
            "x": pixels,
            "w": taps,
            "y": results,
            "shared": len(shared),
            "tap": None,
        }
        return
    for at, (pixel, tap) in enumerate(zip(pixels, taps, strict=True), 1):
        stored = results if at == len(taps) else []
        of_tap = {"x": [pixel], "w": [tap], "y": stored, "shared": 0, "tap": (at, len(taps))}
        yield {"number": number, "thread": name, **of_tap}


def _fit_windows(x, w, y, by_thread):
    """Find stride, dilation and padding from the products: a pixel's row is stride * p + dilation * r - top.

    Return each thread's window as row, column, rows and columns, and the zeros around the image that windows reach:
    top, bottom, left, right. None if threads do not load a tap with each pixel for an output of their own.
    """
    if any(len(X.shape) < 2 for X in (x, w, y)):
        return None
    if any(shared or len(pixels) != len(taps) or len(results) != 1 for pixels, taps, results, shared in by_thread):
        return None
    frames, rim = [], []
    for axis in (0, 1):
        pixel_at, tap_at, output_at = (partial(_position, shape=X.shape, axis=axis) for X in (x, w, y))
        outputs = [output_at(results) for _, _, results, _ in by_thread]
        terms = np.concatenate([np.repeat(p, len(taps)) for p, (_, taps, *_) in zip(outputs, by_thread, strict=True)])
        taps = np.concatenate([tap_at(taps) for _, taps, *_ in by_thread])
        rows = np.concatenate([pixel_at(pixels) for pixels, *_ in by_thread])
        matrix = np.stack([terms, taps, np.ones(len(rows))], axis=1)
        fitted = np.rint(np.linalg.lstsq(matrix, rows, rcond=None)[0]).astype(np.int64)
        if (matrix @ fitted != rows).any():
            return None
        stride, dilation, start = fitted
        size, num_taps, num_outputs = (X.shape[-2:][axis] for X in (x, w, y))
        reach = dilation * (num_taps - 1)
        rim += [max(0, -int(start)), max(0, int(start + stride * (num_outputs - 1) + reach - size + 1))]
        starts = start + stride * np.concatenate(outputs)
        frames.append((starts, np.full_like(starts, reach + 1)))
    (top, height), (left, width) = frames
    return {"frames": np.stack([top, left, height, width], axis=1), "rim": rim}


def _position(elements, shape, axis):
    """Return the rows (axis 0) or columns (axis 1) of elements of an array whose last axes these are."""
    return np.array(elements, np.int64) // (1 if axis else shape[-1]) % shape[-2:][axis]


def _tiles(trace, threads, by_thread, panel):
    """Return the tile of each recorded block: its name, and row, column, rows and columns of the pixels it loads."""
    by_block = {}
    for (block, _), (pixels, *_) in zip(threads, by_thread, strict=True):
        by_block.setdefault(block, []).extend(pixels)
    if not 1 < len(by_block) <= len(TILE_STYLES):
        return []
    tiles = []
    for block, pixels in by_block.items():
        rows, columns = (_position(pixels, panel["sides"], axis) for axis in (0, 1))
        sizes = np.ptp(rows) + 1, np.ptp(columns) + 1
        box = [int(number) for number in (rows.min(), columns.min(), *sizes)]
        x, y, z = trace.samples.blocks[block]
        tiles.append({"block": f"({x}, {y}, {z})", "box": box})
    return tiles


def _thread_name(trace, block, thread):
    columns, rows, _ = trace.block
    index = (thread % columns, thread // columns % rows, thread // columns // rows)
    name = ThreadId(trace.samples.blocks[block], index).named(trace.grid, trace.block)
    return name if prod(trace.grid) > 1 else name.partition(" of block")[0]


def _sentences(trace, names, steps, is_padded):
    """Say what each step does, how many of its pixels were loaded before, and how many taps meet padding."""
    x, w, y = (trace.array(name) if _has(trace, name) else None for name in names.values())
    loaded, says = set(), []
    for step in steps:
        subject = step["thread"][0].upper() + step["thread"][1:]
        stored = f"`{y.name}` at {len(step['y'])} places" if len(step["y"]) > 1 else ""
        stored = element_name(y, step["y"][0]) if len(step["y"]) == 1 else stored
        again = len(loaded.intersection(step["x"]))
        if step["tap"]:
            at, count = step["tap"]
            pair = f"{element_name(x, step['x'][0])} times {element_name(w, step['w'][0])}"
            says.append(
                f"{subject}, **product {at} of {count}**: {pair}{f', and it stores {stored}' if stored else ''}."
            )
        elif not step["x"]:
            says.append(f"{subject} stores {stored}, and loads no pixel of `{x.name}` itself.")
        else:
            pixels = f"**{len(step['x'])} pixel{'s'[: len(step['x']) != 1]}**"
            again = "all" if again == len(step["x"]) else again
            known = f"; {again} of them had been loaded before" if again else ""
            known = "; it had been loaded before" if again and len(step["x"]) == 1 else known
            if trace.counters.shared_loads:
                result = f" into the tile, and stores {stored or 'nothing'}"
            else:
                result = f" for {stored}" if stored else " and stores nothing"
            outside = prod(w.shape[1:]) - len(step["w"]) if is_padded and w else 0
            zeros = f" {outside} taps meet zeros of the padding, which are not loaded." if outside > 0 else ""
            says.append(f"{subject} loads {pixels}{result}{known}.{zeros}")
        loaded.update(step["x"])
    return says


def _window_size(trace, filters):
    """Return the number of loads of a pixel if every tap of every filter loaded it from memory."""
    if not _has(trace, filters):
        return 1
    *planes, rows, columns = trace.array(filters).shape
    return prod(planes[:1]) * rows * columns


def draw_still(figure, data, step):
    """Draw the image by its loads, the filters and the outputs at a step."""
    stills.set_size_and_title(figure, data, step, 9.5, 4.4)
    count = len(data["panels"])
    axes_row = figure.subplots(1, count, width_ratios=[2, *[1] * (count - 1)], squeeze=False)
    for axes, (role, panel) in zip(axes_row[0], data["panels"].items(), strict=True):
        counts, now = counts_at(data, role, step)
        colours = _still_colours(role, counts, now, data["most"])
        stills.show_cells(axes, _on_screen(colours, panel), panel["name"], ROLES[role])
        if role == "x":
            _draw_boxes(axes, panel, data, step)


def _draw_boxes(axes, panel, data, step):
    """Draw the window of the step, which may reach into the padding, and the outlines of the tiles."""
    boxes = [(tile["box"], style) for tile, style in zip(data["tiles"], TILE_STYLES, strict=False)]
    if data["frames"]:
        boxes.append((unpack(data["frames"])[step].tolist(), (COLOURS["ink"], "-")))
    for (row, column, rows, columns), (colour, line) in boxes:
        place = {"xy": (column - 0.5, row - 0.5), "width": columns, "height": rows, "clip_on": False}
        axes.add_patch(Rectangle(**place, fill=False, edgecolor=colour, linestyle=line, linewidth=1.8))


def counts_at(data, role, step):
    """Return how often each element of an array was touched up to a step, and the elements that the step touches."""
    panel, ends, elements = data["panels"][role], unpack(data["ends"][role]), unpack(data[role])
    first = ends[step - 1] if step else 0
    size = prod(panel["planes"]) * prod(panel["sides"])
    return np.bincount(elements[: ends[step]], minlength=size), np.unique(elements[first : ends[step]])


def _still_colours(role, counts, now, most):
    share = {"x": np.where(counts, 0.15 + 0.85 * counts / most, 0), "w": np.full(len(counts), 0.4), "y": counts > 0}
    strength = np.minimum(share[role], 1)[:, None]
    colours = strength * stills.rgb(ROLES[role]) + (1 - strength) * stills.rgb("cell")
    colours[now] = stills.rgb("hot")
    return colours


def _on_screen(colours, panel):
    """Arrange planes below and next to one another, with a white line between them."""
    (down, across), (rows, columns) = panel["planes"], panel["sides"]
    planes = colours.reshape(down, across, rows, columns, 3)
    planes = np.pad(planes, [(0, 0), (0, 0), (0, 1), (0, 1), (0, 0)], constant_values=1.0)
    return planes.transpose(0, 2, 1, 3, 4).reshape(down * (rows + 1), across * (columns + 1), 3)
