"""Intensity over size: formulas, counts, and the ridge of a GPU."""

import pytest

from labkit.views import intensities

COUNTED = {"dot": {64: 0.21, 128: 0.23}, "gemm": {64: 10.7, 128: 21.3}}
FORMULAS = {"dot": lambda n: 0.25, "gemm": lambda n: n / 6}


def test_the_sentence_says_which_routines_are_beyond_the_ridge():
    view = intensities("Only gemm grows", COUNTED, FORMULAS)
    assert view.sentence == (
        "At n = 128, dot makes 0.23 and gemm makes 21.3 FLOP/byte. Only gemm reaches the ridge of the H100 SXM, "
        "20 FLOP/byte."
    )
    assert view.data["table"]["rows"] == [["64", "0.21", "10.7"], ["128", "0.23", "21.3"]]


def test_one_routine_or_several_reach_the_ridge():
    one = {"gemm": COUNTED["gemm"]}, {"gemm": FORMULAS["gemm"]}
    assert intensities("A title", *one).sentence.endswith(" It reaches the ridge of the H100 SXM, 20 FLOP/byte.")
    low = intensities("A title", *one, precision="float16 tensor").sentence
    assert low.endswith(" It does not reach the ridge of the H100 SXM, 295 FLOP/byte.")
    two = {"gemm": COUNTED["gemm"], "wide": {128: 30}}, {"gemm": FORMULAS["gemm"], "wide": FORMULAS["gemm"]}
    assert intensities("A title", *two).sentence.endswith(" All reach the ridge of the H100 SXM, 20 FLOP/byte.")


def test_the_letter_of_the_size():
    view = intensities("Only gemm grows", COUNTED, FORMULAS, size="h")
    assert view.sentence.startswith("At h = 128, ") and view.data["table"]["columns"][0] == "h"


@pytest.mark.parametrize(
    ("gpu", "precision", "ridge"), [("H100 SXM", "float16 tensor", "295"), ("T4", "float32", "25.3")]
)
def test_another_ridge_is_that_of_the_gpu_and_precision(gpu, precision, ridge):
    view = intensities("Only gemm grows", COUNTED, FORMULAS, gpu, precision)
    assert view.sentence.endswith(f" None reaches the ridge of the {gpu}, {ridge} FLOP/byte.")
    assert f"ridge of {gpu}, {precision}" in view.data["charts"]["wide"]


def test_a_routine_needs_counts_and_a_formula(tmp_path):
    with pytest.raises(ValueError, match="counts and a formula for each routine"):
        intensities("A title", COUNTED, {"dot": FORMULAS["dot"]})
    intensities("A title", COUNTED, FORMULAS).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000
