"""From grid to lane, held against CUDA's numbering of threads."""

import numpy as np
import pytest

from labkit.views import grid_to_lane, stills
from labkit.views.base import unpack
from labkit.views.grid_to_lane import cell_colours


@pytest.fixture(scope="module")
def view():
    return grid_to_lane()


def test_an_element_has_its_block_thread_warp_and_lane(view):
    assert view.data["say"][view.data["start"]] == (
        "Thread (3, 2) of block (1, 0) is number 19 of its block: **warp 0, lane 19**. It computes `C[2, 11]`."
    )


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_the_run_numbers_threads_as_cuda_does(view, choice):
    launch = view.data["kept"][choice]
    col, row, block_x, block_y, thread_x, thread_y, warp, lane = unpack(launch["steps"]).astype(int).T
    wide, high = launch["block"]
    assert (col == block_x * wide + thread_x).all() and (row == block_y * high + thread_y).all()
    assert (thread_y * wide + thread_x == 32 * warp + lane).all()
    assert len(set(zip(col, row, strict=True))) == len(col) == launch["cover"][0] * launch["cover"][1]


def test_threads_beyond_the_edge_are_told_so(view):
    without = sum("It has no element" in say for say in view.data["say"])
    assert without == 16 * 24 - 12 * 20
    assert len(view.data["kept"][1]["say"]) == 12 * 32


def test_the_picture_marks_one_thread_and_its_warp(view, tmp_path):
    cells = cell_colours(view.data, view.data["start"])
    assert np.allclose(cells[2, 11], stills.rgb("hot"))
    warp = np.isclose(cells, stills.tint("C", np.array(0.85))).all(axis=2)
    assert warp.sum() == 31 and warp[:4, 8:16].sum() == 31, "8 x 8 threads: a warp is four rows of its block"
    view.save_png(tmp_path / "lane.png")
    assert (tmp_path / "lane.png").stat().st_size > 5000


def test_a_large_launch_is_refused():
    with pytest.raises(ValueError, match="at most 1024 threads, not 4096"):
        grid_to_lane(64, 64)
