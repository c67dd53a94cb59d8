"""How wrong a choice can be, as the chapter on choosing states it, held against the records."""

import pytest

from labkit import conv, places
from labkit.arrays.workspace import Workspace
from labkit.book.contents import source
from labkit.conv import comparisons
from labkit.views import winners

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")


@pytest.fixture(scope="module")
def text():
    return source(places.PACKAGE.parent / "notebooks", "choosing-an-algorithm").read_text(encoding="utf-8")


def test_how_wrong_a_prediction_and_a_timed_choice_can_be(text):
    timed = [one for one in winners().data["records"] if one["format"] == "float32" and one["loss"] is not None]
    losses = [one["loss"] for one in timed]
    assert f"less than 5% on {sum(loss < 0.05 for loss in losses)} of the map's {len(losses)} float32 layers" in text
    assert f"The worst loss is {max(losses):.0%}" in text
    assert f"ours took at most {max(losses):.0%} longer" in text
    missed = max(1 / row["ratio"] for row in comparisons.choices().select(step="torch, 10 candidates"))
    assert f"torch's choice took up to {missed:.1f} times the fastest time" in text


def test_with_one_image_of_7_x_7_bfloat16_loses(text):
    ahead = 0
    for channels in (512, 384, 256, 128, 64, 16):
        for taps in (1, 3, 5, 7, 9):
            sizes = 1, channels, 7, 7, 128, taps, taps, 1, 1, *[taps // 2] * 4
            times_ms = [
                min(
                    row.time_ms for row in conv.heuristic(conv.Forward(*sizes, layout=layout), format) if not row.reason
                )
                for layout, format in (("NCHW", "float32"), ("NHWC", "bfloat16"))
            ]
            ahead += times_ms[1] < times_ms[0]
    assert f"16 bits lose in {30 - ahead} of 30 cells" in text


def test_split_adds_in_two_parts(text):
    problem = conv.Forward(N=1, C=32, H=7, W=7, K=8, R=3, S=3)
    assert "conv.Forward(N=1, C=32, H=7, W=7, K=8, R=3, S=3)" in text
    plan = conv.ladder("implicit_gemm").step("split").launches(*problem.operands(), workspace=Workspace())
    assert plan[0].grid[2] == 2 and f"each sum of {32 * 9} terms into two parts" in text
