"""A tile of whole numbers, whose transforms, products and outputs are held against sums by hand and by NumPy."""

import numpy as np
import pytest

from labkit import conv
from labkit.views import tile_transform
from labkit.views.base import unpack
from labkit.views.tile_transform import BEGIN, COLUMNS, END, OUT_ROWS, PRODUCTS, ROWS


def run(*outputs, side=6, channels=1):
    """Convolutions of whole numbers by tiles of so many outputs."""
    problem = conv.Forward(1, channels, side, side, 1, 3, 3)
    x, w, y, _ = problem.operands()
    x[:] = np.arange(x.size).reshape(x.shape) * 7 % 11
    w[:] = np.array([[1, 2, 0], [0, 3, -1], [2, 1, -2]])
    ladder = conv.ladder("winograd")
    return {f"F({m})": ladder.step(f"f{m}x{m}").simulate(x, w, y, problem).traces for m in outputs}


@pytest.fixture(scope="module")
def view():
    return tile_transform(run(2, 4))


def panels(data):
    return {panel["name"]: unpack(panel["values"]) for panel in data["panels"]}


def test_the_numbers_are_those_of_the_run(view):
    of = panels(view.data)
    assert np.array_equal(of["M"], of["U"] * of["V"])
    d = of["d"]
    assert of["V"][0, 0] == d[0, 0] - d[0, 2] - d[2, 0] + d[2, 2]
    windows = np.lib.stride_tricks.sliding_window_view(d, (3, 3))
    assert np.array_equal(of["y"], np.einsum("pqrs,rs->pq", windows, of["g"]))


def test_a_tile_costs_32_and_24_additions_and_16_products(view):
    """Lavin and Gray (2015), section 4.1."""
    assert view.data["stats"]["values"][-1] == [32, 24, 0, 16]
    assert view.data["kept"][1]["stats"]["values"][-1][3] == 36
    assert view.data["kept"][1]["stats"]["values"][-1][2] > 0, "F(4 x 4) multiplies with constants, too"


def test_each_sum_is_written_out(view):
    of, steps, say = panels(view.data), unpack(view.data["steps"]).tolist(), view.data["say"]
    d, sums = of["d"], of["column sums of d"]
    first = say[steps.index([COLUMNS, 0])]
    assert first == f"Pixels of column 0: {d[2, 0]:g} - {d[0, 0]:g} = **{d[2, 0] - d[0, 0]:g}**."
    below = say[steps.index([ROWS, 5])]
    assert below.endswith(f"= **{sums[1, 1] + sums[1, 2]:g}**.")
    assert say[steps.index([PRODUCTS, 0])] == "`U` times `V`, element by element: **16 products**, and no more follow."
    output = say[steps.index([OUT_ROWS, 3])]
    assert f"= **{of['y'][1, 1]:g}**. It is an **output**." in output
    size = np.abs(np.outer([0, 1, -1, 1], [0, 1, -1, 1]) * of["M"]).sum()
    assert output.endswith(f"Without signs its terms would add up to {size:g}.")


def test_the_first_and_the_last_step_compare(view):
    assert view.data["say"][BEGIN].endswith("As defined, each takes 9 products: **36** in all.")
    assert view.data["say"][-1].startswith("**16 products in place of 36**: 2.25 times fewer")
    assert unpack(view.data["steps"])[-1].tolist() == [END, 0]
    assert view.data["kept"][1]["say"][-1].startswith("**36 products in place of 144**: 4 times fewer")


def test_the_table_has_a_row_for_each_step(view):
    rows = view.data["table"]["rows"]
    assert len(rows) == len(view.data["say"]) == 1 + 1 + 16 + 16 + 1 + 8 + 4 + 1
    assert rows[2][1].startswith("column sums of d, row 0, column 0: ")


def test_still_pictures(view, tmp_path):
    for step in (0, 1, 20, 34, 40, 47):
        view.save_png(tmp_path / f"{step}.png", step=step)
        assert (tmp_path / f"{step}.png").stat().st_size > 5000


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="give those of one"):
        tile_transform({})
    with pytest.raises(ValueError, match="one image, one channel and one filter"):
        tile_transform(run(2, channels=2))
    with pytest.raises(ValueError, match="which the image fills: 6 x 6 does not fit"):
        tile_transform(run(4, side=5))
