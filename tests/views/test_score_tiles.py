"""Tiles of scores and bytes moved, held against the formulas of attention's traffic and against the run's results."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention import traffic
from labkit.views import score_tiles
from labkit.views.base import unpack
from labkit.views.score_tiles import METERS, colours_and_bytes

PROBLEM = attention.AttentionForward(1, 1, 96, 64, causal=True)
TILE = 64, 32


@pytest.fixture(scope="module")
def runs():
    """Each loop order, and what it gave."""
    steps = {"keys outside": "kv_outer", "queries outside": "q_outer"}
    ladder, blocks = attention.ladder("forward"), ((0, 0, 0), (1, 0, 0))
    operands = PROBLEM.operands()
    recorded = {"kv_outer": blocks[:1], "q_outer": blocks}
    return {name: ladder.step(slug).simulate(*operands, record=recorded[slug]) for name, slug in steps.items()}


@pytest.fixture(scope="module")
def view(runs):
    return score_tiles(PROBLEM, {name: run.traces[0] for name, run in runs.items()})


def test_each_order_comes_to_every_tile_that_is_seen_once(view):
    keys_outside, queries_outside = (unpack(run["visits"])[:, :2].tolist() for run in view.data["runs"])
    assert keys_outside == [[0, 0], [1, 0], [0, 1], [1, 1], [1, 2]]
    assert queries_outside == [[1, 0], [1, 1], [1, 2], [0, 0], [0, 1]]
    assert [run["seen"] for run in view.data["runs"]] == [[[True, True, False], [True, True, True]]] * 2


def test_the_meters_end_at_the_bytes_of_the_formula(view):
    keys_outside, queries_outside = (
        dict(zip(METERS, unpack(run["visits"])[-1, 2:].tolist())) for run in view.data["runs"]
    )
    wanted = traffic.q_outer(PROBLEM, *TILE)
    assert queries_outside == {"Q": wanted["Q"], "K, V": 2 * wanted["K"], "O": wanted["O"], "sums": wanted["lse"]}
    wanted = traffic.kv_outer(PROBLEM, *TILE)
    sums = wanted["sums"] + wanted["lse"]
    assert keys_outside == {"Q": wanted["Q"], "K, V": 2 * wanted["K"], "O": wanted["O"], "sums": sums}


def test_maximum_and_sum_of_a_row_end_at_its_log_sum_exp(view, runs):
    told = score_tiles(PROBLEM, {"q_outer": runs["queries outside"].traces[0]}).data["say"]
    assert told[0].startswith("`q_outer`: queries 64 to 95 meet keys 0 to 31. Query 95 begins; its maximum is")
    words = told[2].split()
    maximum, total = (
        float(words[words.index(word) + offset].strip(",.")) for word, offset in (("maximum", 2), ("sum", 1))
    )
    lse = runs["queries outside"].operands[4][0, 0, 95]
    assert maximum + np.log(total) == pytest.approx(lse, abs=0.02)


def test_what_a_row_had_shrinks_where_it_finds_a_larger_score():
    problem = attention.AttentionForward(1, 1, 8, 64, keys=64, hard="rising")
    trace = attention.ladder("forward").step("q_outer").simulate(*problem.operands(), record=((0, 0, 0),)).traces[0]
    assert (
        "finds a larger score: what it had **shrinks to 0%**" in score_tiles(problem, {"q_outer": trace}).data["say"][1]
    )


def test_the_still_picture_shows_the_step(view, tmp_path):
    cells, moved = colours_and_bytes(view.data["runs"][0], 2)
    hot = cells[..., 0] > cells[..., 2] + 0.5
    assert np.argwhere(hot).tolist() == [[0, 1]] and sum(moved) > 0
    view.save_png(tmp_path / "tiles.png", step=2)
    assert (tmp_path / "tiles.png").stat().st_size > 5000


def test_what_cannot_be_shown_is_refused(runs):
    trace = runs["keys outside"].traces[0]
    with pytest.raises(ValueError, match="room for one head, and there are 2"):
        score_tiles(attention.AttentionForward(1, 2, 96, 64), {"": trace})
    with pytest.raises(TypeError, match="takes runs by their names"):
        score_tiles(PROBLEM, trace)
    unrecorded = attention.ladder("forward").step("q_outer").simulate(*PROBLEM.operands(), record=()).traces[0]
    with pytest.raises(ValueError, match="No block of this run is recorded"):
        score_tiles(PROBLEM, {"": unrecorded})


def test_the_sentence_at_the_end_compares_the_bytes_of_the_runs(view):
    keys_outside, queries_outside = (int(unpack(run["visits"])[-1, 2:].sum()) for run in view.data["runs"])
    words = f"moved **{keys_outside / queries_outside:.1f}x** the bytes of `queries outside`."
    assert view.data["say"][-1].endswith(words) and "In all" not in view.data["say"][-2]


def test_pictures_with_one_scale_of_bytes_can_be_compared(view, runs):
    assert view.data["scale_bytes"] == int(unpack(view.data["runs"][0]["visits"])[-1, 2:].sum())
    trace = runs["queries outside"].traces[0]
    assert score_tiles(PROBLEM, {"q_outer": trace}, scale_bytes=10**6).data["scale_bytes"] == 10**6
