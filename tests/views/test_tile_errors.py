"""Errors over the side of a tile, held against runs of the kernels."""

import numpy as np
import pytest

from labkit import conv
from labkit.views import tile_errors
from labkit.views.tile_errors import tile_error


def kernel_error(slug):
    step = conv.ladder("winograd").step(slug)
    problem = conv.Forward(N=1, C=16, H=26, W=26, K=8, R=3, S=3)
    after = step.simulate(*problem.operands()).operands
    exact = problem.oracle(*(array.astype(float) for array in after[:2]))
    return np.linalg.norm(after[2] - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize(("slug", "m"), [("f2x2", 2), ("f4x4", 4), ("f6x6", 6)])
def test_a_line_is_near_the_runs_of_kernels(slug, m):
    assert tile_error(m, 3) == pytest.approx(kernel_error(slug), rel=0.6)


def test_larger_filters_have_the_error_of_their_tile():
    for m, r in ((2, 5), (4, 5), (2, 7)):
        assert tile_error(m, r) == pytest.approx(tile_error(m + r - 3, 3), rel=0.5)


def test_the_sentence_and_the_table(tmp_path):
    view = tile_errors("A title", {"f4x4": (6, 1e-6)}, taps=(3, 5), sides=(4, 6, 8))
    ratio = tile_error(6, 3) / tile_error(2, 3)
    assert view.sentence == (
        f"With 3 x 3 taps the error of a tile of 8 x 8 pixels is {ratio:,.0f} times that of 4 x 4."
    )
    rows = view.data["table"]["rows"]
    assert [row[0] for row in rows] == [4, 6, 8]
    assert rows[0][2] == "" and rows[1][3] == "f4x4: 1.0e-06"
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_a_filter_needs_a_larger_tile():
    with pytest.raises(ValueError, match="8 pixels are too few for 9 taps"):
        tile_errors("A title", {}, taps=(9,), sides=(6, 8))
