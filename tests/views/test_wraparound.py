"""The stain of wrap-around, held against filters whose stain is known."""

import numpy as np
import pytest

import labkit
from labkit import conv, cuda
from labkit.views import wraparound
from labkit.views.base import unpack


@cuda.jit
def on_a_circle(x, w, y):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for s in range(w.shape[1]):
        total += w[0, s] * x[row, (column + s) % 8]
    y[row, column] = total


@cuda.jit
def padded_on_a_circle(x, w, y):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for s in range(w.shape[1]):
        if (column + s) % 8 < x.shape[1]:
            total += w[0, s] * x[row, (column + s) % 8]
    y[row, column] = total


def positive(*shape):
    return np.random.default_rng(4).uniform(0.5, 1, shape).astype(np.float32)


@pytest.fixture(scope="module")
def view():
    growing = np.zeros((3, 4, 4), np.float32)
    for k, R in enumerate((1, 2, 4)):
        growing[k, :R, :R] = positive(R, R)
    return wraparound(conv.circular(positive(16, 16), growing), conv.circular(positive(20, 27), positive(1, 5, 5)))


def own(taps):
    y = np.zeros((8, 8), np.float32)
    return wraparound(labkit.simulate(on_a_circle, 1, (8, 8), positive(8, 8), positive(1, taps), y))


def test_a_step_for_each_filter_and_for_each_tile(view):
    say, numbers = view.data["say"], view.data["stats"]["values"]
    assert len(say) == 3 + 2 * 2
    assert say[0] == "A filter of **1 x 1** taps stains none of 16 x 16 outputs."
    assert say[1].endswith("stains **31 of** 16 x 16 outputs, those of the last row and the last column.")
    assert say[2].endswith("those of the last 3 rows and the last 3 columns.")
    assert [row[1] for row in numbers[:4]] == [0, 31, 256 - 13**2, 256 - 12**2]


def test_tiles_lie_side_by_side_and_fill_the_result(view):
    steps, numbers = view.data["steps"][3:], view.data["stats"]["values"][3:]
    assert [step["frame"] for step in steps] == [[0, 0, 16], [0, 12, 16], [12, 0, 16], [12, 12, 16]]
    assert [step["tile"] for step in steps] == [[0, 0, 12, 12], [0, 12, 12, 11], [12, 0, 4, 12], [12, 12, 4, 11]]
    assert [row[3] for row in numbers] == [144, 144 + 132, 144 + 132 + 48, 16 * 23]
    assert "**4 x 11 are kept** in `y`, none of them stained. Now `y` is whole." in view.data["say"][-1]


def test_the_stain_of_a_kernel_of_the_readers_own():
    view = own(taps=3)
    stained = unpack(view.data["steps"][0]["stained"])
    assert (stained == (np.arange(8) >= 6)).all()
    assert view.sentence == "A filter of 1 x 3 taps stains 16 of 8 x 8 outputs, those of the last 2 columns."


def kept(view):
    return [step["tile"][2:] for step in view.data["steps"]]


def test_a_filter_alone_keeps_its_size_where_it_ends_in_zeros():
    w = positive(1, 3, 3)
    w[:, 2] = 0
    view = wraparound(conv.circular(positive(16, 16), w))
    assert view.sentence == "A filter of 3 x 3 taps stains 46 of 16 x 16 outputs."
    assert kept(view) == [[14, 14]] and unpack(view.data["steps"][0]["y"]).shape == (14, 14)


def test_a_kernel_of_the_readers_own_has_the_filter_that_it_was_given():
    w = positive(1, 3)
    w[0, 2] = 0
    view = wraparound(labkit.simulate(on_a_circle, 1, (8, 8), positive(8, 8), w, np.zeros((8, 8), np.float32)))
    assert view.sentence.startswith("A filter of 1 x 3 taps stains 8 of")


def test_of_a_kernel_of_the_readers_own_what_begins_on_a_pixel_and_is_clean_is_kept():
    for pixels, outputs in ((4, [8, 4]), (6, [8, 6]), (7, [8, 6])):
        y = np.zeros((8, 8), np.float32)
        trace = labkit.simulate(padded_on_a_circle, 1, (8, 8), positive(8, pixels), positive(1, 3), y)
        assert kept(wraparound(trace)) == [outputs]


@pytest.mark.parametrize(("rows", "columns", "outputs"), [(8, 8, [6, 6]), (16, 5, [14, 3]), (3, 3, [1, 1])])
def test_of_an_image_smaller_than_a_tile_only_its_own_outputs_are_kept(rows, columns, outputs, tmp_path):
    x = positive(rows, columns)
    view = wraparound(conv.circular(x, positive(1, 3, 3)))
    assert kept(view) == [outputs]
    assert unpack(view.data["steps"][0]["y"]).shape == tuple(outputs)
    assert view.data["stats"]["values"][0][3] == np.prod(outputs)
    view.save_png(tmp_path / "small.png")


def test_what_is_nan_by_the_definition_is_no_stain():
    x = positive(16, 16)
    x[5, 5] = np.nan
    view = wraparound(conv.circular(x, positive(1, 3, 3)))
    stained, image = unpack(view.data["steps"][0]["stained"]), unpack(view.data["images"][0])
    assert not stained[3:6, 3:6].any() and stained.sum() == 16 * 16 - 9  # all others are NaN through the spectrum alone
    assert np.isfinite(image).all() and len(np.unique(image)) > 200  # the other pixels keep their shades


def test_what_is_kept_and_wrong_is_seen_to_be(view):
    assert not any(unpack(step["y_stained"]).any() for step in view.data["steps"])
    x = positive(16, 30)
    x[5, 20] = np.nan
    tiled = wraparound(conv.circular(x, positive(1, 3, 3)))
    for step in tiled.data["steps"]:  # the tile without the pixel is right
        wrong = unpack(step["y_stained"]).astype(bool)
        assert wrong.shape == (14, 28) and not wrong[3:6, 18:21].any() and wrong.sum() == 14 * 14 - 9
        assert not wrong[:, :14].any()


def test_something_must_be_shown():
    with pytest.raises(ValueError, match=r"give what `conv.circular\(x, w\)` returned"):
        wraparound()


def test_still_pictures(view, tmp_path):
    for step in (2, 6):
        view.save_png(tmp_path / f"{step}.png", step=step)
        assert (tmp_path / f"{step}.png").stat().st_size > 5000
