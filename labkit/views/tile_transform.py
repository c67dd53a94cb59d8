"""One tile of a convolution by transforms (Winograd), with its values: pixels, sums of pixels, products, outputs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labkit.conv.winograd.transforms import transforms
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import View, pack, stats_by_step, unpack
from labkit.views.transformed import find_array, row_costs, single_plane, tile_sides

LABELS = ["additions, of pixels", "additions, of outputs", "products with constants", "products of U and V"]
# What a step computes, which is the name of a panel but for the first and the last step.
STAGES = ("begin", "U", "column sums of d", "V", "M", "column sums of M", "y", "end")
BEGIN, FILTER, COLUMNS, ROWS, PRODUCTS, OUT_COLUMNS, OUT_ROWS, END = range(len(STAGES))
PANELS = {"d": BEGIN, "column sums of d": COLUMNS, "V": ROWS, "g": BEGIN, "U": FILTER, "M": PRODUCTS}
PANELS |= {"column sums of M": OUT_COLUMNS, "y": OUT_ROWS}  # each with the stage that computes it, in order of drawing


class Step(NamedTuple):
    """What a step computes, what the sentence says, and what it costs (see LABELS)."""

    stage: int
    cell: int
    sentence: str
    cost: tuple[int, int, int, int] = (0, 0, 0, 0)


def tile_transform(runs: Mapping[str, Sequence[Trace]]) -> View:
    """Step through the first tile of an image: each sum of its transforms and its products, with the numbers of a run.

    A choice above the picture changes the size of the tile.

    Parameters
    ----------
    runs
        By name, the launches of a convolution of one image, one channel and one filter, without padding. Their arrays
        are x, w, U, V, M and y, as in `labkit.conv.winograd`.
    """
    choices = [{"name": name, **_choice_data(traces)} for name, traces in runs.items()]
    if not choices:
        raise ValueError("tile_transform shows the launches of a convolution by transforms: give those of one.")
    data = {**choices[0], "kept": choices, "chosen": 0}
    return View("tile_transform", "One tile, number by number", data, draw_still)


def _choice_data(traces) -> dict:
    """Return what is drawn of one size of tile, as JSON-ready data."""
    x, w, y = (single_plane(find_array(traces, name)) for name in "xwy")
    U, V, M = (find_array(traces, name) for name in "UVM")
    (m, _), (n, across) = tile_sides(len(U), w.shape)
    if n != across or min(x.shape) < n:
        raise ValueError(f"The picture has room for a square tile, which the image fills: {n} x {across} does not fit.")
    A, _, B = (matrix.astype(np.float32) for matrix in transforms(m, len(w)))
    U, V, M = (array.reshape(len(U), -1)[:, 0].reshape(n, n) for array in (U, V, M))
    arrays = x[:n, :n], B.T @ x[:n, :n], V, w, U, M, A.T @ M, y[:m, :m]
    values = dict(zip(PANELS, arrays, strict=True))
    steps = list(_steps(values, A, B))
    counts = np.cumsum([step.cost for step in steps], axis=0).tolist()
    return {
        "say": [step.sentence for step in steps],
        "steps": pack(np.array([[step.stage, step.cell] for step in steps])),
        "panels": [
            {"name": name, "stage": PANELS[name], "values": pack(array), "shape": array.shape}
            for name, array in values.items()
        ],
        "A": pack(A),
        "B": pack(B),
        **stats_by_step(["step", "computed"], _cells(steps, values), LABELS, counts),
    }


def _cells(steps, values):
    """Return the first columns of the table behind the picture: the step, and what it computes."""
    for number, step in enumerate(steps):
        name = STAGES[step.stage]
        if step.stage in (BEGIN, FILTER, PRODUCTS, END):
            yield number + 1, name
        else:
            row, column = divmod(step.cell, values[name].shape[1])
            yield number + 1, f"{name}, row {row}, column {column}: {_number(values[name][row, column])}"


def _steps(values, A, B) -> Iterator[Step]:
    """Yield the steps, from the pixels and the filter to the outputs."""
    (n, m), taps = A.shape, values["g"].size
    defined = m * m * taps
    yield Step(
        BEGIN,
        0,
        f"**{n * n} pixels** `d` and a filter `g` of {taps} taps have **{m * m} outputs**. As defined, each takes "
        f"{taps} products: **{defined}** in all.",
    )
    yield Step(
        FILTER,
        0,
        f"The filter becomes {n * n} numbers `U`. All tiles use them, so this is done **once, in advance**.",
    )
    yield from _sums(COLUMNS, values["d"], values["column sums of d"], B, "Pixels of column {column}")
    yield from _sums(ROWS, values["column sums of d"].T, values["V"].T, B, "Row {column} of these sums")
    yield Step(
        PRODUCTS, 0, f"`U` times `V`, element by element: **{n * n} products**, and no more follow.", (0, 0, 0, n * n)
    )
    yield from _sums(OUT_COLUMNS, values["M"], values["column sums of M"], A, "Products of column {column}")
    for step in _sums(OUT_ROWS, values["column sums of M"].T, values["y"].T, A, "Row {column} of these sums"):
        p, q = divmod(step.cell, m)
        size = (np.abs(np.outer(A[:, p], A[:, q]) * values["M"])).sum()
        yield step._replace(
            sentence=f"{step.sentence} It is an **output**. Without signs its terms would add up to {_number(size)}."
        )
    yield Step(
        END,
        0,
        f"**{n * n} products in place of {defined}**: {defined / n**2:.3g} times fewer, for the same {m * m} outputs.",
    )


def _sums(stage, summed, sums, matrix, name) -> Iterator[Step]:
    """Yield a step for each sum along the columns of `summed`; V and y are given transposed."""
    costs, is_transposed, is_of_outputs = row_costs(matrix.T), stage in (ROWS, OUT_ROWS), stage > PRODUCTS
    for column in range(sums.shape[1]):
        for row, cost in enumerate(costs):
            terms = sorted(zip(matrix[:, row], summed[:, column], strict=True), key=lambda term: term[0] < 0)
            written = _written([term for term in terms if term[0]])
            sentence = f"{name.format(column=column)}: {written} = **{_number(sums[row, column])}**."
            cell = column * len(costs) + row if is_transposed else row * sums.shape[1] + column
            of_pixels, of_outputs = (0, cost.additions) if is_of_outputs else (cost.additions, 0)
            yield Step(stage, cell, sentence, (of_pixels, of_outputs, cost.constants, 0))


def _written(terms) -> str:
    """Write out a sum of coefficients times values."""
    text = ""
    for number, (coefficient, value) in enumerate(terms):
        sign = " - " if coefficient < 0 else " + "
        factor = "" if abs(coefficient) == 1 else f"{_number(abs(coefficient))} x "
        shown = f"({_number(value)})" if value < 0 and (number or coefficient < 0) else _number(value)
        text += f"{sign.strip() if not number else sign}{factor}{shown}"
    return text.removeprefix("+")


def _number(value) -> str:
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def draw_still(figure, data, step):
    """Draw the tile's panels at a step; the cells that the step computes are marked."""
    stills.set_size_and_title(figure, data, step, 9.5, 5)
    stage, cell = unpack(data["steps"])[step].tolist()
    for axes, panel in zip(figure.subplots(2, 4).ravel(), data["panels"], strict=True):
        values = unpack(panel["values"])
        is_done, is_now = _progress(panel, stage, cell, values.shape)
        role = {"g": "B", "U": "B", "y": "C"}.get(panel["name"], "A")
        cells = np.where(is_done[..., None], stills.tint(role, 0.35), stills.rgb("cell"))
        stills.show_cells(axes, np.where(is_now[..., None], stills.tint("hot", 0.6), cells), panel["name"], lines=1)
        for (row, column), value in np.ndenumerate(values):
            if is_done[row, column]:
                stills.write(axes, column, row, _number(value), fontsize=7 if values.shape[0] < 5 else 5)


def _progress(panel, stage, cell, shape):
    """Return which cells of a panel are computed by now, and which of them in this step."""
    if panel["stage"] != stage:
        return np.full(shape, panel["stage"] < stage), np.zeros(shape, bool)
    if stage in (BEGIN, FILTER, PRODUCTS):
        return np.ones(shape, bool), np.full(shape, stage != BEGIN)
    order = np.arange(np.prod(shape)).reshape(shape)
    if stage in (COLUMNS, OUT_COLUMNS):  # one column after another
        rank = order.reshape(shape[::-1]).T
        return rank <= rank.ravel()[cell], order == cell
    return order <= cell, order == cell
