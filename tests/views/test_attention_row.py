"""One query of an attention, held against a run of the package's kernels and against float64."""

import numpy as np
import pytest

from labkit import attention
from labkit.views import attention_row
from labkit.views.base import unpack

WORDS = ["the", "cat", "sat"]


def run(causal):
    """Return S, P, V and O of one head of standard attention over three words."""
    problem = attention.AttentionForward(batch=1, heads=1, queries=3, head_dim=2, causal=causal)
    operands = problem.operands()
    found = attention.ladder("forward").step("standard").simulate(*operands)
    S, P = found.traces[0].outputs[2][0], found.traces[1].outputs[0][0]
    return S, P, operands[2][0, 0], found.operands[3][0, 0]


@pytest.fixture(scope="module")
def view():
    return attention_row(WORDS, {"all": run(False), "causal": run(True)}, ["a", "b"], start=1)


def test_the_output_is_the_mean_of_all_values_by_probability(view):
    P, V, O = (unpack(view.data[name]).astype(float) for name in "PVO")
    assert pytest.approx(O, abs=1e-6) == P @ V
    S = unpack(view.data["S"]).astype(float)[0]
    assert pytest.approx(P[0], abs=1e-6) == np.exp(S) / np.exp(S).sum(1, keepdims=True)
    assert [[stats[3] for stats in of_run] for of_run in view.data["stats"]] == [["100%"] * 3] * 2


def test_the_sentence_names_the_key_with_the_highest_score(view):
    S, P = (unpack(view.data[name])[0, 1] for name in "SP")
    best = int(S.argmax())
    assert view.sentence.startswith(
        f"cat (query 2) sees 3 of 3 keys. {WORDS[best]} scores highest, {S[best]:.2f}, and gets {P[best]:.0%}"
    )
    assert view.data["stats"][0][1] == ["3", f"{S[best]:.2f}", f"{P[best]:.0%}", "100%"]


def test_keys_with_the_same_score_are_named_together():
    S = np.log(np.float32([[2, 2, 1], [1, 1, 1], [1, 2, 1]]))
    P, V = np.exp(S) / np.exp(S).sum(1, keepdims=True), np.ones((3, 2), np.float32)
    says = attention_row(WORDS, {"ties": (S, P, V, P @ V)}).data["say"]
    assert "`the` and `cat` score highest, 0.69, and get **40%** each, before `sat` 20%. O is" in says[0]
    assert "`the`, `cat` and `sat` score highest, 0.00, and get **33%** each. O is" in says[1]
    assert "`cat` scores highest, 0.69, and gets **50%**, before `the` 25% and `sat` 25%. O is" in says[2]
    S = np.zeros((4, 4), np.float32)
    says = attention_row([*WORDS, "."], {"ties": (S, S + 0.25, S[:, :2], S[:, :2])}).data["say"]
    assert "4 keys score highest, 0.00, and get **25%** each. O is" in says[0]


def test_a_causal_query_sees_no_later_key(view):
    assert [stats[0] for stats in view.data["stats"][1]] == ["1", "2", "3"]
    assert (unpack(view.data["visible"])[1] == np.tri(3)).all()
    first = view.data["says"][1][0]
    assert "**the** (query 1) sees 1 of 3 keys. `the` scores highest" in first and "**100%**. O is the mean" in first
    rows = view.data["table"]["rows"]
    assert len(rows) == 6 and rows[3][:2] == ["causal", "the"] and rows[3][3:5] == ["masked", "masked"]


def test_a_probability_for_no_key_is_told():
    S, P, V, _ = run(True)
    says = attention_row(WORDS, {"sink": (S, P / 4, V, P / 4 @ V)}).data["says"][0]
    assert all(say.endswith("The probabilities add up to 25%: **75%** go to no key.") for say in says)
    nothing = np.full((3, 3), -np.inf, np.float32)
    shown = attention_row(WORDS, {"masked": (nothing, P * 0, V, P @ V)}).data
    assert shown["say"][2] == "**sat** sees no key." and shown["stats"][0][2] == ["0", "-", "-", "0%"]
    assert shown["features"] == ["column 0", "column 1"]


def test_a_negative_output_is_hollow():
    S, P, V, O = run(False)
    values = np.array([-0.5, 0.25])
    negative, positive = attention_row(WORDS, {"both": (S, P, V, O * 0 + values)})._drawn(0).axes[3].patches
    assert negative.get_facecolor()[3] == 0 and negative.get_edgecolor() == positive.get_facecolor()


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "row.svg", step=2)
    assert (tmp_path / "row.svg").stat().st_size > 5000
    S, P, V, O = run(False)
    with pytest.raises(ValueError, match="there is no run"):
        attention_row(WORDS, {})
    with pytest.raises(ValueError, match="those of 'short' have"):
        attention_row(WORDS, {"short": (S[:2], P, V, O)})
