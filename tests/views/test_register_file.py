"""Warps whose registers an SM has room for, held against the rules of occupancy."""

import pytest

from labkit import sm_occupancy
from labkit.views import register_file


@pytest.fixture(scope="module")
def view():
    return register_file("H100 SXM", 256, {"register_tile": 111, "double_buffering": 147, "tuned": 255})


def test_blocks_come_whole(view):
    rows = {registers: warps for registers, _, warps, _ in view.data["table"]["rows"]}
    assert rows[32] == 64 and rows[128] == 16 and rows[136] == 8 and rows[255] == 8
    for registers, warps in rows.items():
        assert warps == sm_occupancy("H100 SXM", 256, registers=registers).warps


def test_warps_fit_into_the_parts(view):
    data = view.data
    for blocks, size in zip(data["blocks"], data["warpRegisters"], strict=True):
        warps_of_a_part = blocks * data["blockWarps"] // data["parts"]
        assert warps_of_a_part * size <= data["partRegisters"]


def test_a_sentence_names_kernels_that_take_so_many(view):
    assert view.data["say"][view.data["registers"].index(152)] == (
        "With **152 registers** per thread, an SM has room for 1 block, **8 of 64 warps**. "
        "Such kernels: `double_buffering`."
    )
    assert view.sentence == "With 128 registers per thread, an SM has room for 2 blocks, 16 of 64 warps."
    assert view.data["say"][0].endswith("**64 of 64 warps**, all that it can hold.")


def test_a_thread_has_so_many_registers_and_no_more():
    with pytest.raises(ValueError, match=r"huge takes 300 registers: a thread has 1 to 255\."):
        register_file("H100 SXM", 256, {"huge": 300})


def test_a_still_picture(view, tmp_path):
    view.save_png(tmp_path / "view.png", step=20)
    assert (tmp_path / "view.png").stat().st_size > 5000
