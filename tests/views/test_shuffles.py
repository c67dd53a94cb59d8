"""The sum of a warp by shuffles: what lanes hold after each one, from a run."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.views import shuffles
from tests.views.texts import touching, written


@cuda.jit
def sum_of_lanes(held):
    lane = cuda.threadIdx.x
    value = lane
    held[0, lane] = value
    for step in range(1, 6):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 32 >> step)
        held[step, lane] = value


@pytest.fixture(scope="module")
def held():
    return labkit.simulate(sum_of_lanes, 1, 32, np.zeros((6, 32), np.int32)).outputs[0]


def test_half_as_many_lanes_hold_the_total_after_each_shuffle(held):
    data = shuffles(held).data
    assert data["stats"]["values"][0] == ["0", "32", "0"]
    assert [lanes for _, lanes, _ in data["stats"]["values"]] == ["32", "16", "8", "4", "2", "1"]
    assert data["say"][1] == (
        "Shuffle 1: each lane adds the value of the lane **16** further on. Lanes 0 to 15 now hold the total together."
    )
    assert data["say"][5].endswith(f"Lane 0 holds the sum of all 32: **{sum(range(32))}**.")


def test_the_table_has_the_values_that_still_count(held):
    rows = shuffles(held).data["table"]["rows"]
    assert rows[3][0] == "112 120 128 136" and rows[5][0] == "496"
    assert all(sum(map(int, row[0].split())) == 496 for row in rows)


def test_values_that_are_no_such_sum_are_refused(held):
    wrong = held.copy()
    wrong[2, 3] += 1
    with pytest.raises(ValueError, match="Shuffle 2 must add the lane 8 further on"):
        shuffles(wrong)
    for values in (held[:5], held.astype(np.float32), held[0]):
        with pytest.raises(ValueError, match="a row for 2\\*\\*n lanes"):
            shuffles(values)


def test_a_still_picture_is_drawn(held, tmp_path):
    shuffles(held).save_png(tmp_path / "view.png", step=3)
    assert (tmp_path / "view.png").stat().st_size > 5000


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [760, 818, 970])
def test_sums_of_three_digits_stay_apart(browser, held, tmp_path, width):
    texts = written(browser, shuffles(held), tmp_path / "view.html", width, ["End"])
    assert "496" in [one["text"] for one in texts]
    assert not touching(texts, gap=2)
