"""Products of tiles, held against those counted by hand and against the arrays of the run."""

import numpy as np
import pytest

import labkit
from labkit import conv, cuda
from labkit.views import collapse
from labkit.views.base import unpack
from labkit.views.collapse import LABELS, colour_panels


def run(problem, *outputs):
    """A convolution as it is defined, and by tiles of so many outputs."""
    operands = problem.operands(seed=3)
    direct = conv.ladder("direct").step("naive").simulate(*operands).traces[0]
    ladder = conv.ladder("winograd")
    return direct, {f"F({m})": ladder.step(f"f{m}x{m}").simulate(*operands).traces for m in outputs}


@pytest.fixture(scope="module")
def ragged():
    """5 x 7 outputs: tiles reach beyond the edge."""
    return collapse(*run(conv.Forward(1, 1, 7, 9, 1, 3, 3), 2, 4))


def test_a_tile_takes_16_products_in_place_of_36(ragged):
    say, values = ragged.data["say"], ragged.data["stats"]["values"]
    assert say[0] == "Tile 1 of 12: **16 pixels** are under the windows of **4 outputs**."
    assert say[4] == "Tile 1 of 12: As defined, output 4 takes **9**, a pixel times a tap; that makes **36**."
    assert values[4][:3] == [36, 0, 0]
    assert say[7].endswith("the same 4 outputs: **16 in place of 36**.")
    assert values[7][:2] == [36, 16]
    assert values[5][2] == 32, "Lavin and Gray (2015), section 4.1: additions for the pixels of F(2 x 2, 3 x 3)"
    assert values[7][2] - values[5][2] == 24, "and for its outputs"


def test_outputs_beyond_the_edge_are_no_products_as_defined(ragged):
    values = ragged.data["stats"]["values"]
    assert len(values) == 8 + 11
    assert values[-1][:2] == [9 * 5 * 7, 16 * 3 * 4]
    assert ragged.data["say"][10] == "Tile 4 of 12: 18 products as defined, **16** of transformed pixels."


def test_another_choice_has_other_tiles(ragged):
    way = ragged.data["kept"][1]
    assert way["name"] == "F(4)" and way["sides"]["out"] == (4, 4)
    assert way["stats"]["values"][-1][:2] == [9 * 5 * 7, 36 * 4]
    assert (
        way["say"][1]
        == "Tile 1 of 4: As defined, each of 16 outputs takes **9**, a pixel times a tap; that makes **144**."
    )


def test_the_numbers_are_those_of_the_run():
    direct, ways = run(conv.Forward(1, 1, 6, 6, 1, 3, 3), 2)
    data = collapse(direct, ways).data
    V, M, U = (unpack(data[name]) for name in "VMU")
    assert np.allclose(V.reshape(-1, 16) * U, M.reshape(-1, 16), rtol=1e-6)
    x = unpack(data["x"]).reshape(6, 6)
    assert np.isclose(V[0], x[0, 0] - x[0, 2] - x[2, 0] + x[2, 2])
    error = float(data["stats"]["values"][-1][3])
    assert 0 < error < 1e-6


def test_errors_may_be_left_for_the_learner_to_guess():
    data = collapse(*run(conv.Forward(1, 1, 6, 6, 1, 3, 3), 2), errors=False).data
    assert data["stats"]["labels"] == LABELS[:3] and all(len(values) == 3 for values in data["stats"]["values"])
    assert data["table"]["columns"] == ["tile", *LABELS[:3]]


def test_the_still_picture_shows_the_step(ragged, tmp_path):
    hot = colour_panels(ragged.data, 2)["as defined"][..., 1] < 0.5
    assert hot.sum() == 18 and hot[:3].all()
    ragged.save_png(tmp_path / "collapse.png", step=12)
    assert (tmp_path / "collapse.png").stat().st_size > 5000


def test_a_playground_begins_with_the_totals():
    view = collapse(*run(conv.Forward(1, 1, 6, 6, 1, 3, 3), 2), at_end=True)
    assert view.data["start"] == len(view.data["say"]) - 1
    assert view.sentence.startswith("Tile 4 of 4")


def test_several_channels_do_not_fit():
    with pytest.raises(ValueError, match="one image, one channel and one filter"):
        collapse(*run(conv.Forward(1, 2, 6, 6, 1, 3, 3), 2))


def test_padding_does_not_fit():
    with pytest.raises(ValueError, match="without padding"):
        collapse(*run(conv.Forward(1, 1, 6, 6, 1, 3, 3, top=1), 2))


def test_what_has_no_transform_is_refused():
    direct, _ = run(conv.Forward(1, 1, 6, 6, 1, 3, 3))
    with pytest.raises(ValueError, match="No launch has an array U"):
        collapse(direct, {"direct": [direct]})
    with pytest.raises(ValueError, match="give the launches"):
        collapse(direct, {})


@cuda.jit
def sums(x, w, y):
    q = cuda.grid(1)
    y[q] = x[q] * w[0] + x[q + 1] * w[1]


@cuda.jit
def tiles_of_two(x, U, V, M, y):
    """F(2, 2) at the points 0, 1 and infinity."""
    t = cuda.grid(1)
    d0, d1, d2 = x[2 * t], x[2 * t + 1], x[2 * t + 2]
    V[0, t], V[1, t], V[2, t] = d0 - d1, d1, d2 - d1
    for i in range(3):
        M[i, t] = U[i] * V[i, t]
    y[2 * t], y[2 * t + 1] = M[0, t] + M[1, t], M[1, t] + M[2, t]


def test_a_line_by_one_launch_has_tiles_of_a_row_and_no_additions_of_transforms_alone():
    x, w, y = np.arange(7, dtype=np.float32) ** 2, np.array([2, 3], np.float32), np.zeros(6, np.float32)
    U, V = np.array([2, 5, 3], np.float32), np.zeros((3, 3), np.float32)
    by_tiles = labkit.simulate(tiles_of_two, 1, 3, x, U, V, V.copy(), y)
    data = collapse(labkit.simulate(sums, 1, 6, x, w, y), {"": [by_tiles]}).data
    assert data["sides"]["out"] == (1, 2) and data["sides"]["tile"] == (1, 3)
    assert data["stats"]["labels"] == ["products as defined", "products of transformed pixels", LABELS[-1]]
    assert data["stats"]["values"][-1] == [12, 9, "0e+00"]
    assert "additions" not in " ".join(data["say"])
