"""Elements moved per score, held against attention's traffic as a formula and against the laws of the curves."""

import pytest

from labkit import attention
from labkit.attention import traffic
from labkit.views import io_curve

PROBLEM = attention.AttentionForward(1, 1, 64, 64)
TILES = {"standard": ("standard", (64,)), "KV-outer": ("kv_outer", (64, 32)), "Q-outer": ("q_outer", (64, 32))}


@pytest.fixture(scope="module")
def runs():
    ladder = attention.ladder("forward")
    return {
        name: (ladder.step(slug).simulate(*PROBLEM.operands()).traces, 32 if name == "KV-outer" else 64)
        for name, (slug, _) in TILES.items()
    }


@pytest.fixture(scope="module")
def view(runs):
    return io_curve(PROBLEM, runs)


def test_the_parts_are_those_of_the_formula(view):
    for bar in view.data["bars"]:
        slug, tile = TILES[bar["name"]]
        bytes_of = getattr(traffic, slug)(PROBLEM, *tile)
        wanted = [bytes_of.get("S", 0), bytes_of["Q"], bytes_of["K"] + bytes_of["V"], bytes_of["O"]]
        assert bar["parts"][:4] == pytest.approx([moved / 4 / PROBLEM.pairs for moved in wanted])


def test_the_runs_lie_on_their_curves(view):
    dots, at = {dot["name"]: dot for dot in view.data["dots"]}, view.data["start"]
    curve = dict(zip(view.data["sides"], view.data["curves"]["Q-outer"][at]))
    assert dots["Q-outer"]["value"] == pytest.approx(curve[64]) == 2
    curve = dict(zip(view.data["sides"], view.data["curves"]["KV-outer"][at]))
    # O is written once more, before the first keys
    assert dots["KV-outer"]["value"] == pytest.approx(curve[32] + 64 / PROBLEM.keys)
    assert dots["standard"]["value"] == 6


def test_the_sentence_tells_where_the_loops_are_even(view):
    assert "head_dim 64: the Q-outer loop moves less than any standard attention once its tile has more than 32" in (
        view.sentence
    )
    assert "Counted in all" in view.sentence and "Counted" not in view.data["say"][0]


def test_a_still_picture_and_what_is_refused(view, runs, tmp_path):
    view.save_png(tmp_path / "io.png")
    assert (tmp_path / "io.png").stat().st_size > 10_000
    with pytest.raises(TypeError, match="standard, KV-outer and Q-outer"):
        io_curve(PROBLEM, {"Q-outer": runs["Q-outer"]})
    with pytest.raises(ValueError, match="one head with a head_dim of"):
        io_curve(attention.AttentionForward(1, 2, 64, 64), runs)
