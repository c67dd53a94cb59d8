"""Outputs of one thread in several kernels, held against what their files say."""

import numpy as np
import pytest

from labkit import gemm
from labkit.views import compare_outputs
from labkit.views.base import unpack


@pytest.fixture(scope="module")
def view():
    operands = gemm.Problem(128, 128, 16).operands()
    slugs = ("tiled", "register_column", "register_tile")
    return compare_outputs({slug: gemm.step("fp32", slug).simulate(*operands).traces[0] for slug in slugs})


def test_loads_grow_with_the_sides_and_multiply_adds_with_the_area(view):
    rows = view.data["table"]["rows"]
    assert rows == [
        ["tiled", "16 x 16", 1, 1, 1, "2"],
        ["register_column", "64 x 64", 8, 8, 1, "1.125"],
        ["register_tile", "128 x 128", 64, 8, 8, "0.25"],
    ]
    for _, _, outputs, high, wide, loads in rows:
        assert outputs == high * wide and float(loads) == (high + wide) / outputs


def test_a_step_is_a_lane_and_says_its_loads(view):
    assert len(view.data["say"]) == 32
    assert view.data["say"][5] == (
        "Thread 5, for one k, loads and multiply-adds: **1 + 1** for 1 in `tiled`, **8 + 1** for 8 in "
        "`register_column` and **8 + 8** for 64 in `register_tile`."
    )


def test_outputs_belong_to_the_thread_that_stores_them(view):
    owner = unpack(view.data["panels"][1]["owner"])
    row, col = np.indices((64, 64))
    assert (owner == row // 8 * 64 + col).all()


def test_names_are_wanted():
    with pytest.raises(TypeError, match="compare_outputs takes traces by their names"):
        compare_outputs({})


def test_a_still_picture(view, tmp_path):
    view.save_png(tmp_path / "view.png", step=3)
    assert (tmp_path / "view.png").stat().st_size > 5000
