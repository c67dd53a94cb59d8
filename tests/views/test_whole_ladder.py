"""All steps on one scale: what the sentence, the caption and the table say of made rungs."""

import pytest

from labkit.views import Rung, whole_ladder

RUNGS = [
    Rung("loops", "python", "Three loops.", "01", "64x64x64 in float32", "NumPy", 0.00004, "0.01 GFLOP/s"),
    Rung("loops", "rows", "Swapped loops.", "01", "64x64x64 in float32", "NumPy", 0.046, "9 GFLOP/s"),
    Rung(
        "gemm/fp32",
        "naive",
        "One thread per output.",
        "02",
        "64x64x64 in float32",
        "cuBLAS",
        0.0189,
        "1 TFLOP/s",
        0.0145,
    ),
    Rung("gemm/fp32", "tuned", "Copies that run ahead.", "05"),
]


def test_each_step_says_its_chapter_its_idea_and_its_speed():
    view = whole_ladder(RUNGS, "A GPU", start="gemm/fp32")
    assert view.sentence == (
        "Chapter 02, gemm/fp32, step 1 of 2, naive: One thread per output. 1.9% of cuBLAS and 1.5% of the roof: "
        "1 TFLOP/s, 64x64x64 in float32."
    )
    assert view.data["say"][1].endswith("**4.6% of NumPy**: 9 GFLOP/s, 64x64x64 in float32."), "a CPU has no roof here"
    assert view.data["say"][3].endswith("**Not recorded.**")
    assert view.data["firsts"] == [0, 2, 4] and view.data["start"] == 2


def test_the_caption_names_steps_without_a_dot_and_off_the_scale():
    caption = whole_ladder(RUNGS, "A GPU").data["caption"]
    assert caption.startswith("A GPU. ") and "Not recorded, and without a dot: tuned." in caption
    assert caption.endswith("Slower than 0.1% of the library, and a triangle at the left: python.")
    assert "triangle" not in whole_ladder(RUNGS[1:3], "A GPU").data["caption"]


def test_the_table_has_a_row_for_each_step():
    rows = whole_ladder(RUNGS, "A GPU").data["table"]["rows"]
    assert rows[0] == ["01", "loops", "python", "0.004%", "NumPy", "0.01 GFLOP/s", "", "64x64x64 in float32"]
    assert rows[3] == ["05", "gemm/fp32", "tuned", "", "", "", "", ""]


@pytest.mark.parametrize(
    ("rungs", "start", "message"),
    [
        ([], "", "give it some"),
        ([RUNGS[0], RUNGS[2], RUNGS[1]], "", "group them by ladder"),
        (RUNGS, "gemm", "choose one of loops, gemm/fp32"),
    ],
)
def test_what_cannot_be_drawn(rungs, start, message):
    with pytest.raises(ValueError, match=message):
        whole_ladder(rungs, "A GPU", start)


def test_each_step_has_a_still_picture(tmp_path):
    view = whole_ladder(RUNGS, "A GPU")
    for step in range(len(RUNGS)):
        view.save_png(tmp_path / "view.png", step, dpi=40)
    assert (tmp_path / "view.png").stat().st_size > 4_000
