"""The size of a lowered matrix over the side of the filter, held against its definition."""

import pytest

from labkit.views import lowering
from labkit.views.lowered_law import law_data
from tests.views.test_lowering import PADDED, PLAIN, stored


def test_each_point_is_the_matrix_over_the_images_and_the_run_is_one_of_them():
    law = law_data((2, 3, 8, 6), 3 * 9, (2, 1))
    assert law["strides"] == [1, 2, 3] and law["sides"] == [2, 3, 4, 5], "a filter of 1 would meet zeros of the border"
    for stride, factors in zip(law["strides"], law["factors"], strict=True):
        for side, factor in zip(law["sides"], factors, strict=True):
            P, Q = (8 + 2 - side) // stride + 1, (6 + 2 - side) // stride + 1
            assert factor == pytest.approx(side**2 * P * Q / 48, rel=1e-3)
    assert law["at"] == [1, 1], "stride 2, side 3"


def test_the_dot_is_the_size_that_was_stored():
    view = lowering(stored(PLAIN), shape=(2, 2, 6, 6), setting=(1, 0))
    law, held = view.data["law"], view.data["bytes"]
    assert law["factors"][law["at"][0]][law["at"][1]] == held["matrix"] / held["images"]
    assert view.data["stats"]["labels"] == ["copies of this pixel"], "the dot says it in place of a number"
    assert lowering(stored(PLAIN), shape=(2, 2, 6, 6)).data["law"] is None


def test_curves_that_end_at_one_place_share_a_text():
    assert [named for _, named in law_data((8, 8), 9, (1, 0))["ends"]] == ["stride 1", "stride 2 and 3"]
    assert [named for _, named in law_data((8, 8), 9, (1, 1))["ends"]] == ["stride 1", "stride 2", "stride 3"]


def test_runs_share_an_axis_if_they_fit_into_it():
    assert law_data((8, 8), 1, (3, 0))["scale"] == law_data((2, 8, 8), 50, (1, 2))["scale"]
    large = law_data((16, 16), 81, (4, 4))
    assert large["sides"][-1] == 9 and large["strides"] == [1, 2, 3, 4] and large["scale"][1] > 81


def test_a_still_picture_and_a_filter_that_is_not_square(tmp_path):
    lowering(stored(PLAIN), shape=(2, 2, 6, 6), setting=(1, 0)).save_png(tmp_path / "law.png")
    lowering(stored(PLAIN), shape=(2, 2, 6, 6)).save_png(tmp_path / "plain.png")
    assert (tmp_path / "law.png").stat().st_size > (tmp_path / "plain.png").stat().st_size
    with pytest.raises(ValueError, match="rows is not of 2 channels and a square filter"):
        lowering(stored(PADDED), shape=(2, 2, 5, 4), setting=(2, 1))
