"""Waves count tiles, busy SMs and useful work as a launch of such tiles would have them."""

import pytest

from labkit import gemm
from labkit.views import waves

WIDTHS = range(64, 257, 8)


@pytest.fixture(scope="module")
def view():
    return waves(256, 11008, 128, WIDTHS)


def test_tiles_are_the_blocks_of_a_kernel_with_such_tiles(view):
    (wgmma,) = (step for step in gemm.ladder("tensor") if step.slug == "wgmma")
    grid, _ = wgmma.geometry(256, 11008)  # tiles of 128 x 256
    assert view.data["steps"][-1]["tiles"] == (grid if isinstance(grid, int) else grid[0])


def test_the_best_width_keeps_all_sms_busy_in_one_wave(view):
    best = view.data["steps"][view.data["best"]]
    assert best["width"] == 168 and best["tiles"] == best["busy_last"] == 132 and best["waves"] == 1
    assert view.data["say"][view.data["best"]] == (
        "132 tiles of 128 x 168 take one wave, and no SM idles. Of all that the SMs could do in that "
        "time, **99%** is useful."
    )


def test_useful_work_is_what_is_left_of_idle_sms_and_ragged_edges(view):
    for step in view.data["steps"]:
        slots = step["waves"] * 132
        assert step["useful"] == pytest.approx(256 * 11008 / (slots * 128 * step["width"]))
        assert step["busy_last"] == step["tiles"] - (step["waves"] - 1) * 132 <= 132
    assert len(view.data["table"]["rows"]) == len(WIDTHS)


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "waves.svg", step=3)
    assert (tmp_path / "waves.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="up to 4 waves"):
        waves(4096, 4096, 128, [64])
