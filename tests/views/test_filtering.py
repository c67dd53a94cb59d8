"""Filters on a picture, held against correlations that NumPy computes."""

import numpy as np
import pytest

from labkit import conv
from labkit.views import filtering
from labkit.views.base import unpack

FILTERS = {
    "keep": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    "blur": np.full((3, 3), 1 / 9),
    "vertical edges": [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    "double": [[0, 0, 0], [0, 2, 0], [0, 0, 0]],
}


@pytest.fixture(scope="module")
def halves():
    """A picture whose right half is white, and what a kernel made of it."""
    x, w, y, problem = conv.Forward(1, 1, 8, 10, len(FILTERS), 3, 3).operands()
    x[:] = np.arange(10) >= 5
    w[:, 0] = np.array([np.asarray(taps, np.float32) for taps in FILTERS.values()])
    (trace,) = conv.ladder("direct").step("naive").simulate(x, w, y, problem).traces
    return x[0, 0], w[:, 0], trace.outputs[2][0]


def test_outputs_are_those_of_the_run(halves):
    x, _, y = halves
    view = filtering(*halves, list(FILTERS))
    kept, blurred, edges, doubled = unpack(view.data["y"])
    assert (kept == x[1:-1, 1:-1]).all() and (doubled == 2 * kept).all()
    assert blurred[0] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 1, 1, 1], abs=1e-6)
    assert (edges[0] == [0, 0, 0, 4, 4, 0, 0, 0]).all(), "one edge, two columns wide"
    assert (unpack(view.data["y"]) == y).all()


def test_the_sentence_says_what_becomes_of_a_flat_area(halves):
    keep, blur, edges, double = filtering(*halves, list(FILTERS)).data["say"]
    assert keep == "**keep**. Its taps add up to 1, so a flat area keeps its grey. Outputs lie between 0 and 1."
    assert blur.startswith("**blur**. Its taps add up to 1")
    assert edges.startswith("**vertical edges**. Its taps add up to 0, so a flat area becomes 0")
    assert edges.endswith("Orange is above 0, blue below. Outputs lie between 0 and 4.")
    assert "add up to 2, so a flat area is multiplied by that" in double


def test_only_filters_of_changes_are_drawn_with_signs(halves):
    view = filtering(*halves, list(FILTERS))
    assert view.data["signed"] == [False, False, True, False]
    assert view.data["largest"] == 4
    assert [row[2] for row in view.data["table"]["rows"]] == ["1", "1", "0", "2"]


def test_a_still_picture(halves, tmp_path):
    view = filtering(*halves, list(FILTERS))
    for step in (0, 2):
        view.save_png(tmp_path / f"{step}.png", step=step)
        assert (tmp_path / f"{step}.png").stat().st_size > 5000


def test_what_does_not_fit_is_refused(halves):
    x, w, y = halves
    with pytest.raises(ValueError, match="with a name each"):
        filtering(x, w, y, ["keep"])
    with pytest.raises(ValueError, match="use no padding, stride 1"):
        filtering(x, w, y[:, 1:], list(FILTERS))
