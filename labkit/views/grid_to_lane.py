"""From the grid to a lane: which block, thread, warp and lane computes an element of a matrix."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

import labkit
from labkit import cuda
from labkit.trace import WARP_LANES
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

MOST_THREADS = 1024  # of a launch: each is a step of the view
STEP_FIELDS = "col", "row", "block_x", "block_y", "thread_x", "thread_y", "warp", "lane"


@cuda.jit
def note_thread(threads):
    col, row = cuda.grid(2)
    threads[row, col, 0] = cuda.threadIdx.x
    threads[row, col, 1] = cuda.threadIdx.y


def grid_to_lane(
    rows: int = 12,
    columns: int = 20,
    blocks: Sequence[tuple[int, int]] = ((8, 8), (16, 4), (4, 16)),
    start: tuple[int, int] = (2, 11),
) -> View:
    """Step through the threads of a launch, one per element of a matrix, from runs of a kernel that notes them.

    Parameters
    ----------
    rows, columns
        Size of the matrix.
    blocks
        Shapes of a block, threads along x and along y; a menu chooses.
    start
        Row and column of the element that is shown first.
    """
    kept = [_launch(rows, columns, block, start) for block in blocks]
    title = f"From grid to lane: a thread for each element of C, {rows} x {columns}"
    data = {**kept[0], "kept": kept, "chosen": 0}
    return View("grid_to_lane", title, data, draw_still)


def _launch(rows, columns, block, start):
    """Return the steps of a launch with blocks of this shape: one for each thread, warp by warp."""
    grid = -(-columns // block[0]), -(-rows // block[1])
    cover = grid[1] * block[1], grid[0] * block[0]
    if cover[0] * cover[1] > MOST_THREADS:
        raise ValueError(f"grid_to_lane shows at most {MOST_THREADS} threads, not {cover[0] * cover[1]}.")
    every_block = tuple((x, y, 0) for y in range(grid[1]) for x in range(grid[0]))
    trace = labkit.simulate(note_thread, grid, block, np.zeros((*cover, 2), np.int32), record=every_block)
    threads, samples = trace.outputs[0], trace.samples
    steps = []
    for block_number, warp, site, index in zip(samples.block, samples.warp, samples.site, samples.index, strict=True):
        if trace.sites[site].site.text != "threads[row, col, 0]":
            continue
        for lane in np.flatnonzero(index >= 0):
            row, col, _ = np.unravel_index(int(index[lane]), threads.shape)
            block_x, block_y, _ = samples.blocks[block_number]
            steps.append([col, row, block_x, block_y, *threads[row, col], warp, lane])
    steps = np.array(steps)
    steps = steps[np.lexsort((steps[:, 7], steps[:, 6], steps[:, 2], steps[:, 3]))]
    says = [_sentence(dict(zip(STEP_FIELDS, step.tolist(), strict=True)), block, rows, columns) for step in steps]
    return {
        "say": says,
        "start": int(np.flatnonzero((steps[:, 1] == start[0]) & (steps[:, 0] == start[1]))[0]),
        "shape": [rows, columns],
        "cover": list(cover),
        "block": list(block),
        "grid": list(grid),
        "steps": pack(steps),
        "name": f"{block[0]} x {block[1]} threads",
        "table": table(["row", "col"], steps[:, [1, 0]].tolist(), by_step=True),
    }


def _sentence(at, block, rows, columns):
    number = at["thread_y"] * block[0] + at["thread_x"]
    has_element = at["row"] < rows and at["col"] < columns
    what = f"It computes `C[{at['row']}, {at['col']}]`." if has_element else "It has no element: the guard stops it."
    return (
        f"Thread ({at['thread_x']}, {at['thread_y']}) of block ({at['block_x']}, {at['block_y']}) is number {number} "
        f"of its block: **warp {number // WARP_LANES}, lane {number % WARP_LANES}**. {what}"
    )


def draw_still(figure, data, step):
    """Draw the matrix with its blocks, and the block, warp and lane of a step."""
    stills.set_size_and_title(figure, data, step, 7.5, 5.5)
    axes = figure.add_subplot()
    stills.show_cells(axes, cell_colours(data, step), lines=0.5)
    width, height = data["block"]
    for x in range(data["grid"][0]):
        for y in range(data["grid"][1]):
            corner = x * width - 0.5, y * height - 0.5
            axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=COLOURS["fg"], lw=1.2))


def cell_colours(data, step):
    """Return the colours of all threads' cells at a step, rows x columns x RGB."""
    steps = unpack(data["steps"]).astype(int)
    now = steps[step]
    in_block = (steps[:, 2:4] == now[2:4]).all(axis=1)
    in_warp = in_block & (steps[:, 6] == now[6])
    strength = np.where(in_warp, 0.85, np.where(in_block, 0.35, 0.14))
    cells = np.ones((*data["cover"], 3))
    cells[steps[:, 1], steps[:, 0]] = stills.tint("C", strength)
    outside = (steps[:, 1] >= data["shape"][0]) | (steps[:, 0] >= data["shape"][1])
    cells[steps[outside, 1], steps[outside, 0]] = stills.tint("dim", np.where(in_warp, 0.6, 0.2)[outside])
    cells[now[1], now[0]] = stills.rgb("hot")
    return cells
