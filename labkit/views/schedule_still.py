"""The schedule view as a still picture, drawn from the same data."""

from itertools import groupby

import numpy as np

from labkit.views import stills
from labkit.views.base import COLOURS, unpack

KIND_COLOURS = ("A", "C", "B", "ink")
KIND_LETTERS = "rwa"
SHOWN_STEPS = 40


def draw_still(figure, data, step):
    """Draw the accesses around one step, the source with each warp's line, and the array after the step."""
    common, lines, kinds, rows = data["common"], *(unpack(data[name]) for name in ("line", "kind", "row"))
    tall = max(len(common["source"]), 12) * 0.17
    count = len(common["rows"])
    stills.set_size_and_title(figure, data, step, 9.5, 1.1 + 0.24 * count + tall, fontsize=8, wrap=True)
    grid = figure.add_gridspec(2, 2, height_ratios=[0.24 * count + 0.2, tall])
    _turns(figure.add_subplot(grid[0, :]), data, step, lines, kinds, rows)
    next_lines = unpack(data["stands"])[step] if len(lines) else []
    _source(figure.add_subplot(grid[1, 0]), common, lines[step] if len(lines) else 0, next_lines)
    if common["array"]:
        _array(figure.add_subplot(grid[1, 1]), data, step, kinds, rows)


def _turns(axes, data, step, lines, kinds, rows):
    names, high = data["common"]["rows"], unpack(data["high"])
    first = max(0, min(step - SHOWN_STEPS // 2, len(lines) - SHOWN_STEPS))
    for k in range(first, min(first + SHOWN_STEPS, len(lines))):
        colour = COLOURS["hot" if data["races"][k] else KIND_COLOURS[kinds[k]]]
        edge = {"edgecolor": COLOURS["fg"], "linewidth": 1.4} if k == step else {"edgecolor": "none"}
        wide = 0.3 if kinds[k] == 3 else 0.9
        is_aside = data["common"]["array"] and kinds[k] != 3 and not data["touched"][k]  # an access to another array
        tall, top = (0.3, rows[k] - 0.15) if is_aside else (high[k] - 0.15, rows[k] - 0.42)
        axes.bar(k, tall, wide, top, color=colour, alpha=1 if k <= step else 0.3, **edge)
        if kinds[k] != 3 and not is_aside:
            text = f"{KIND_LETTERS[kinds[k]]}{lines[k]}"
            stills.write(axes, k, rows[k], text, size=5, color="white" if k <= step else COLOURS["fg"])
    axes.set(xlim=(first - 0.6, first + SHOWN_STEPS - 0.4), ylim=(len(names) - 0.4, -0.6))
    axes.set_yticks(range(len(names)), names, fontsize=7)
    stills.hide_marks(axes, labelbottom=False)


def _source(axes, common, line, next_lines):
    axes.set_axis_off()
    axes.set(xlim=(0, 60), ylim=(len(common["source"]), -1))
    for row, text in enumerate(common["source"]):
        number = common["first"] + row
        waiting_rows = [k for k, at in enumerate(next_lines) if at == number]
        colour = COLOURS["hot" if number == line else "fg"]
        axes.text(0, row, f"{number:4d}  {text}", family="monospace", size=6.5, color=colour, va="center")
        if waiting_rows:
            axes.text(
                60,
                row,
                f"< next: {named_rows(common, waiting_rows)}",
                size=6.5,
                color=COLOURS["A"],
                va="center",
                ha="right",
            )


def _array(axes, data, step, kinds, rows):
    array = data["common"]["array"]
    held, now, racing = contents(data, step, kinds, rows)
    columns = array["columns"]
    cells = np.ones((max(-(-len(held) // columns), 6), columns, 3))
    for element, value in enumerate(held):
        tone = "cell" if value is None else "line"
        if element in now:
            tone = "hot" if element in racing else KIND_COLOURS[kinds[step]]
        y, x = divmod(element, columns)
        cells[y, x] = stills.rgb(tone)
        if value is not None:
            ink = "white" if element in now else COLOURS["fg"]
            stills.write(axes, x, y, value, size=4.5 if len(value) < 4 else 3.2, color=ink)
    stills.show_cells(axes, cells, f"{array['name']} after the step", lines=1, aspect="auto")


def contents(data, step, kinds, rows):
    """Return the shown array's values after a step, for its block; the elements touched now, and those that race."""
    array, per_block = data["common"]["array"], data["common"]["perBlock"]
    values, touched = list(array["filled"]), None
    for k in range(min(step + 1, len(kinds))):
        touched = data["touched"][k]
        if touched and (not array["shared"] or rows[k] // per_block == rows[step] // per_block):
            for element, value in zip(touched["elements"], touched["values"]):
                values[element] = value
    return values, *(set(touched[name] if touched else ()) for name in ("elements", "racing"))


def named_rows(common, numbers) -> str:
    """Return rows in few words: "warps 0, 2–4"; for several blocks, the number of warps."""
    if len(numbers) == 1:
        return common["rows"][numbers[0]]
    if common["perBlock"] < len(common["rows"]):
        return f"{len(numbers)} warps"
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return f"warps {', '.join(str(r[0]) if len(r) == 1 else f'{r[0]}–{r[-1]}' for r in runs)}"
