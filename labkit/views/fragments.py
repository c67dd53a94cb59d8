"""Fragments of one `mma`: the elements that each lane of a warp loaded and stored."""

from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import TENSOR, WARP_LANES, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, pack, table, unpack
from labkit.views.wording import check_traces, join

M, N = 16, 8  # of an `mma`


def fragments(traces: Mapping[str, Trace], A: str = "A", B: str = "B", C: str = "C") -> View:
    """Show which elements of A, B and the accumulators each lane holds, for one `mma` in one or several formats.

    Parameters
    ----------
    traces
        Runs by the format's name. In each kernel one warp loads its words of A (16 rows) and of B (8 rows, the columns
        of the product) from global memory, makes one `mma`, and stores its four accumulators to C.
    A, B, C
        The arrays' names in the kernel.

    Raises
    ------
    ValueError
        A run is not of one warp and one `mma`.
    """
    check_traces("fragments", traces)
    choices = {name: _choice(name, trace, (A, B, C)) for name, trace in traces.items()}
    first = next(iter(choices))
    data = {**choices[first], "choices": choices}
    return View("fragments", "Fragments: which lane holds what in one `mma`", data, draw_still)


def _choice(name, trace, arrays):
    """Return what is drawn of one format, as JSON-ready data."""
    flops = sum(count for kind, count in trace.counters.flops_by_dtype.items() if kind.endswith(TENSOR))
    k = flops // (2 * M * N)
    held = [_accesses(trace, array, kind) for array, kind in zip(arrays, ("load", "load", "store"), strict=True)]
    if [len(found) for found in held] != [4, 2, 4] or flops != 2 * M * N * k or not k:
        raise ValueError(
            f"fragments shows one warp that loads four words of {arrays[0]} and two of {arrays[1]}, makes one `mma`, "
            f"and stores four accumulators to {arrays[2]}; the run {name!r} does something else."
        )
    words = trace.array(arrays[0]).shape[1]
    elements_per_register = [k // words, k // words, 1]  # of A, B and C
    widths = [words, words, N]
    registers = [
        [[_part(array, int(flat), width, size) for flat in row] for row in found]
        for array, found, width, size in zip(arrays, held, widths, elements_per_register, strict=True)
    ]
    names = [f"{letter}{n}" for letter, found in zip("abc", held, strict=True) for n in range(len(found))]
    rows = [[lane, *(row[lane] for found in registers for row in found)] for lane in range(WARP_LANES)]
    return {
        "say": [_sentence(lane, registers, elements_per_register[0]) for lane in range(WARP_LANES)],
        "counter": [f"lane {lane}" for lane in range(WARP_LANES)],
        "start": 6,
        "name": name,
        "arrays": list(arrays),
        "k": k,
        "each": elements_per_register,
        "held": [pack(found) for found in held],
        "words": words,
        "table": table(["lane", *names], rows),
    }


def _accesses(trace, array, kind):
    """Return the element of each lane, one row per access of the first warp."""
    site_numbers = [i for i, found in enumerate(trace.sites) if found.site.array == array and found.site.kind == kind]
    samples = trace.samples
    return samples.index[np.isin(samples.site, site_numbers) & (samples.warp == 0)]


def _part(array, flat, width, count):
    """Return the elements of a register, as Python writes them."""
    row, first = flat // width, flat % width * count
    return f"{array}[{row}, {first}]" if count == 1 else f"{array}[{row}, {first}:{first + count}]"


def _sentence(lane, registers, each):
    held = [join([f"`{row[lane]}`" for row in found]) for found in registers]
    size = "one element" if each == 1 else f"{each} elements"
    return (
        f"**Lane {lane}** (g = {lane // 4}, t = {lane % 4}) holds {held[0]}; {held[1]}: {size} per register. "
        f"Its accumulators are {held[2]}."
    )


def cells(choice, lane):
    """Return row, column and register of each element that a lane holds, of A, of B transposed as drawn, and of C."""
    cells_by_matrix = []
    for matrix, (letter, packed) in enumerate(zip("abc", choice["held"], strict=True)):
        width, each = (N if matrix == 2 else choice["words"]), choice["each"][matrix]
        matrix_cells = []
        for number, flat in enumerate(unpack(packed)[:, lane].tolist()):
            for i in range(each):
                row, column = flat // width, flat % width * each + i
                matrix_cells.append((*((column, row) if matrix == 1 else (row, column)), f"{letter}{number}"))
        cells_by_matrix.append(matrix_cells)
    return cells_by_matrix


def draw_still(figure, data, step):
    """Draw A left, B above, C where they meet; the lane's elements are filled."""
    k = data["k"]
    figure.set_size_inches(0.3 * (k + 12), 0.3 * (k + 20))
    axes = figure.add_subplot()
    axes.set_axis_off()
    corners = [(0, k + 1), (k + 1, 0), (k + 1, k + 1)]
    shapes = [(M, k), (k, N), (M, N)]
    for (x, y), (rows, columns), places, letter in zip(corners, shapes, cells(data, step), "ABC", strict=True):
        for row in range(rows):
            for column in range(columns):
                axes.add_patch(Rectangle((x + column, y + row), 0.9, 0.9, facecolor=COLOURS["cell"]))
        for row, column, register in places:
            axes.add_patch(Rectangle((x + column, y + row), 0.9, 0.9, facecolor=COLOURS[letter]))
            stills.write(axes, x + column + 0.45, y + row + 0.45, register, fontsize=6, color="white")
    axes.set(xlim=(-0.5, k + 10), ylim=(k + 18, -0.5), aspect="equal")
    axes.set_title(heading(data, step), fontsize=8, loc="left", color=COLOURS["fg"], wrap=True)
