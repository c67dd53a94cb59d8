"""The online softmax value by value, held against sums that are known."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.softmax.online import update_max_and_sum
from labkit.views import rescaling
from labkit.views.base import unpack


@cuda.jit
def watched(x, maxima, totals):
    row = cuda.grid(1)
    maximum, total = np.float32(-3.4e38), np.float32(0)
    for i in range(x.shape[1]):
        maximum, total = update_max_and_sum(maximum, total, x[row, i])
        maxima[row, i], totals[row, i] = maximum, total


@pytest.fixture(scope="module")
def view():
    x = np.float32([[1, 0, 3, 2], [101, 100, 103, 102]])
    _, maxima, totals = labkit.simulate(watched, 1, 2, x, x * 0, x * 0).outputs
    with np.errstate(over="ignore"):
        return rescaling([0, 100], x, maxima, totals, np.exp(x).cumsum(1))


def test_a_new_maximum_multiplies_the_sum_by_one_factor(view):
    first, second, third, _ = view.data["rows"][0]["stats"]
    assert first == ["1.00", "-", "1.00", "2.72"]
    assert second == ["1.00", "1.00", "1.37", "3.72"]
    assert third == ["3.00", "0.14", "1.19", "23.80"]
    assert view.data["say"][2] == (
        "Value 3 is 3.00, a **new maximum**: all that was summed is multiplied by exp(1.00 - 3.00) = **0.14**, and 1 "
        "is added. The sum is 1.19."
    )
    assert view.data["say"][3] == "Value 4 is 2.00. The maximum stays 3.00: 0.37 is added. The sum is 1.55."


def test_a_maximum_below_zero_is_added_in_words():
    x = np.float32([[-2, -1]])
    say = rescaling([0], x, x, np.float32([[1, 1.37]]), np.exp(x).cumsum(1)).data["say"][1]
    assert "multiplied by exp(-2.00 + 1.00) = **0.37**" in say


def test_bars_are_the_parts_of_the_sum(view):
    heights = unpack(view.data["heights"])
    assert heights[0, 2] == pytest.approx(np.exp([-2, -3, 0, -np.inf]))
    totals = [float(stats[2]) for row in view.data["rows"] for stats in row["stats"]]
    assert heights.sum(2).ravel() == pytest.approx(totals, abs=0.005)


def test_what_is_added_to_all_moves_only_the_plain_sum(view):
    near, far = view.data["rows"]
    assert [stats[1:3] for stats in near["stats"]] == [stats[1:3] for stats in far["stats"]]
    assert far["stats"][-1][3] == "infinite" and far["say"][-1].endswith("has **overflowed**.")
    assert not any("overflowed" in say for say in near["say"])
    assert len(view.data["table"]["rows"]) == 8


def test_exponentials_that_vanish_are_told():
    x = np.float32([[-200]])
    assert rescaling([-200], x, x, x / x, np.exp(x)).data["say"][0].endswith("nothing can be divided by it.")


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "rescaling.svg", step=2)
    assert (tmp_path / "rescaling.svg").stat().st_size > 5000
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="of the same shape"):
        rescaling([0], x, x, x, x)
    with pytest.raises(ValueError, match="logits that are finite"):
        rescaling([0, 1], x * np.inf, x, x, x)
