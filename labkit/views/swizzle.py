"""A tile in shared memory as an `ldmatrix` reads it: rows of 128 bytes, eight lanes at a time."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import block_name, check_trace, recorded_block

PIECE_BYTES, PIECES = 16, 8  # of a row
ROW_BYTES = PIECE_BYTES * PIECES  # all 32 banks once
LANES = 8  # that a wavefront serves
MOST_STEPS = 400
MOST_ROWS = 16  # in the picture at a time


def swizzle(*traces: Trace, array: str | None = None, labels=(), warp: int = 0, block=None) -> View:
    """Show where the 16-byte pieces of a tile's rows are stored, and in which banks eight lanes of an `ldmatrix` meet.

    Parameters
    ----------
    traces
        Runs of kernels that make the same `ldmatrix`; several are side by side.
    array
        The tile, a shared array with rows of 128 bytes; the first that an `ldmatrix` reads if left out.
    labels
        What to call each trace.
    warp, block
        Whose accesses: a warp of a recorded block (x, y, z), the first if left out.

    Raises
    ------
    ValueError
        The warp loads no matrices from such an array.
    """
    if not traces:
        raise TypeError("swizzle takes a trace, what `labkit.simulate` returned, not nothing.")
    sides = []
    for number, trace in enumerate(traces):
        check_trace("swizzle", trace)
        label = labels[number] if number < len(labels) else trace.kernel
        sides.append(_side(trace, array, label, warp, block))
    steps = min(len(side["passes"]) for side in sides)
    rows = [[step + 1, *(side["passes"][step] for side in sides)] for step in range(steps)]
    data = {
        "say": [_sentence(sides, step) for step in range(steps)],
        "sides": sides,
        "table": table(["eight lanes", *(f"wavefronts, {side['label']}" for side in sides)], rows, by_step=True),
    }
    return View("swizzle", f"Swizzle: eight rows of `{sides[0]['array']}` at a time", data, draw_still)


def _side(trace, array, label, warp, block):
    """Return a tile, the piece at each place, and the places that each group of eight lanes reads."""
    block, recorded = recorded_block(trace, block)
    recorded = recorded[trace.samples.warp[recorded] == warp]
    vector_load = ("shared", "load", PIECE_BYTES)
    sites = [counted.site for counted in trace.sites]
    loads = [i for i, site in enumerate(sites) if (site.space, site.kind, site.bytes) == vector_load]
    name = array if array is not None else next((sites[i].array for i in loads), None)
    loads = [i for i in loads if sites[i].array == name]
    accesses = recorded[np.isin(trace.samples.site[recorded], loads)]
    if not len(accesses):
        raise ValueError(
            f"Warp {warp} of block {block_name(block)} makes no `ldmatrix`{f' of {array!r}' if array else ''}: "
            "swizzle shows those of a tile whose rows have 128 bytes."
        )
    info = trace.array(name)
    if info.shape[-1] * info.itemsize != ROW_BYTES:
        raise ValueError(f"A row of {name} has {info.shape[-1] * info.itemsize} bytes: swizzle shows rows of 128.")
    groups, leads = [], []
    for lanes in trace.samples.index[accesses]:
        for first in range(0, len(lanes), LANES):
            if (lanes[first : first + LANES] >= 0).all():
                groups.append(_place(info, lanes[first : first + LANES]))
                leads.append(first)
    groups = np.array(groups[:MOST_STEPS])
    contents = _contents(trace, recorded, name, info)
    touched = int(groups.max()) // PIECES + 1
    return {
        "label": label,
        "array": name,
        "rows": touched,
        "contents": pack(contents[:touched]),
        "places": pack(groups),
        "leads": leads[:MOST_STEPS],
        "passes": [int(np.bincount(np.unique(group) % PIECES).max()) for group in groups],
    }


def _place(info, elements):
    """Return the places of elements in the tile; a row has 8 places."""
    return (info.addresses(elements) - info.base_address) // PIECE_BYTES


def _contents(trace, recorded, name, info):
    """Return which piece of its row each place holds, according to the block's copies; -1 where that is unknown.

    A copy is a load of 16 bytes of global memory and a store of them, one right after the other.
    """
    samples = trace.samples
    rows = int(np.prod(info.shape[:-1]))
    contents = np.full((rows, PIECES), -1)
    loads_by_warp: dict[int, tuple] = {}
    for row in np.flatnonzero(samples.block == samples.block[recorded[0]]):
        if samples.site[row] < 0:
            continue
        site, warp = trace.sites[samples.site[row]].site, int(samples.warp[row])
        if site.space == "global" and site.kind == "load" and site.bytes == PIECE_BYTES:
            loads_by_warp[warp] = site, samples.index[row]
        elif site.array == name and site.kind == "store" and warp in loads_by_warp:
            source, read = loads_by_warp.pop(warp)
            lanes = (samples.index[row] >= 0) & (read >= 0)
            position = _place(info, samples.index[row][lanes])
            of_row = read[lanes] % trace.array(source.array).shape[-1]
            contents.reshape(-1)[position] = of_row * trace.array(source.array).itemsize // PIECE_BYTES % PIECES
    return contents


def _sentence(sides, step):
    first = sides[0]
    places = unpack(first["places"])[step].astype(int)
    pieces = np.unique(unpack(first["contents"]).reshape(-1)[places])
    what = f"vector {pieces[0]} of" if len(pieces) == 1 and pieces[0] >= 0 else "a vector each of"
    rows = places // PIECES
    parts = []
    for side in sides:
        passes = side["passes"][step]
        banks = np.unique(unpack(side["places"])[step].astype(int) % PIECES)
        count = f"**{passes} wavefronts**" if passes > 1 else "1 wavefront"
        parts.append(f"in `{side['label']}`: {count}, through {4 * len(banks)} of the 32 banks")
    lanes, counts = first["leads"][step], "; ".join(parts)
    loaded = f"Lanes {lanes} to {lanes + LANES - 1} load {what} rows {rows.min()} to {rows.max()}"
    return f"{loaded}. {counts[0].upper()}{counts[1:]}."


def draw_still(figure, data, step):
    """Draw the tiles side by side; the places that eight lanes read are filled."""
    sides = data["sides"]
    stills.set_size_and_title(figure, data, step, 4.6 * len(sides), 0.2 * MOST_ROWS + 1.4, fontsize=8, x=0.01)
    for axes, side in zip(np.ravel(figure.subplots(1, len(sides))), sides, strict=True):
        contents, wanted = unpack(side["contents"]), unpack(side["places"])[step].tolist()
        passes = side["passes"][step]
        shown = min(side["rows"], MOST_ROWS)
        first = min(min(wanted) // PIECES // MOST_ROWS * MOST_ROWS, side["rows"] - shown)
        for row in range(first, first + shown):
            for place in range(PIECES):
                on = row * PIECES + place in wanted
                colour = COLOURS["hot" if passes > 1 else "C"] if on else COLOURS["cell"]
                axes.add_patch(Rectangle((place, row), 0.94, 0.9, facecolor=colour))
                if contents[row, place] >= 0:
                    colour = "white" if on else COLOURS["dim"]
                    stills.write(axes, place + 0.47, row + 0.47, contents[row, place], fontsize=6, color=colour)
        axes.set(xlim=(0, PIECES), ylim=(first + shown, first), yticks=[])
        axes.set_xticks(np.arange(PIECES) + 0.5, [str(4 * place) for place in range(PIECES)], fontsize=7)
        axes.set_xlabel("first of four banks", fontsize=8)
        axes.set_title(f"{side['label']}: {passes} wavefront" + "s" * (passes > 1), fontsize=9, loc="left")
        stills.hide_marks(axes)
