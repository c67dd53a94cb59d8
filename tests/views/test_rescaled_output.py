"""A row of O tile by tile, held against the run's result and against the factors that its maxima give."""

import numpy as np
import pytest

from labkit import attention
from labkit.views import rescaled_output
from labkit.views.base import unpack

PROBLEM = attention.AttentionForward(1, 1, 64, 64, keys=128)
QUERY = 18  # finds larger scores in later tiles


@pytest.fixture(scope="module")
def run():
    return attention.ladder("forward").step("q_outer").simulate(*PROBLEM.operands(), record=((0, 0, 0),))


@pytest.fixture(scope="module")
def view(run):
    return rescaled_output(PROBLEM, run.traces[0], QUERY)


def test_a_larger_score_multiplies_exponentials_sum_and_accumulator_by_one_factor(view):
    steps = [n for n, rescales in enumerate(view.data["rescales"]) if rescales]
    assert steps
    heights, acc = unpack(view.data["heights"]), unpack(view.data["acc"])
    for step in steps:
        factor = acc[step] / acc[step - 1]
        assert factor == pytest.approx(np.full(64, factor[0]), rel=1e-4) and factor[0] < 1
        arrived = heights[step - 1] > 0
        assert heights[step][arrived] == pytest.approx(factor[0] * heights[step - 1][arrived], rel=1e-4)
        assert f"**Everything so far is multiplied by {factor[0]:.2f}**" in view.data["say"][step]


def test_the_bars_add_up_to_the_sum_and_the_last_accumulator_over_it_is_o(view, run):
    heights, acc = unpack(view.data["heights"]), unpack(view.data["acc"])
    totals = [float(values[2]) for values in view.data["stats"]["values"]]
    assert heights.sum(1) == pytest.approx(totals, abs=0.006)
    assert acc[-1] / heights[-1].sum() == pytest.approx(run.operands[3][0, 0, QUERY], abs=1e-5)
    assert float(view.data["stats"]["values"][-1][3]) < 1e-5
    assert view.data["tile"] == 32 and len(view.data["table"]["rows"]) == len(view.data["say"])


def test_a_still_picture_and_what_is_refused(view, run, tmp_path):
    view.save_png(tmp_path / "row.png", step=view.data["rescales"].index(True))
    assert (tmp_path / "row.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="No recorded block of this run has query 64"):
        rescaled_output(PROBLEM, run.traces[0], 64)
    with pytest.raises(ValueError, match="is not what its tiles give"):
        rescaled_output(attention.AttentionForward(1, 1, 64, 64, keys=128, scale=2.0), run.traces[0], QUERY)
