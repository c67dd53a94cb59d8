"""Curves of computed values: names, sentence and table."""

import pytest

from labkit.views import curves

ERRORS = {"float16": {16: 5e-4, 4096: 0.07}, "float32": {16: 6e-8, 4096: 9e-7}}


def test_the_sentence_and_the_table(tmp_path):
    view = curves("A title", ERRORS, x="K", y="error", ticks=(16, 4096), logarithmic=True)
    assert view.sentence == "At K = 4,096: float16 0.07 and float32 9e-07."
    assert view.data["table"]["rows"][0] == ["16", "0.0005", "6e-08"]
    assert all(text in view.data["charts"]["narrow"] for text in ("float16", "4,096", "1e-07"))
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_dots_are_runs_and_a_unit_follows_each_value():
    view = curves("A title", {"blocks": {8: 20, 16: 100}}, x="M", y="useful, %", dots={8: 21}, about=8, unit="%")
    assert view.sentence == "At M = 8: blocks 20%."
    assert view.data["table"] == {
        "columns": ["M", "blocks, %", "runs, %"], "rows": [["8", "20", "21"], ["16", "100", ""]], "byStep": False
    }  # fmt: skip
    assert view.data["legend"][-1] == ("●", "fg", "runs in the simulator")


def test_what_is_refused():
    with pytest.raises(ValueError, match="cannot be about M 9: blocks has no value there"):
        curves("A title", {"blocks": {8: 20}}, x="M", y="useful", about=9)
    with pytest.raises(ValueError, match="6 curves, more than 5"):
        curves("A title", {str(n): {1: 1} for n in range(6)}, x="M", y="useful")
    with pytest.raises(ValueError, match="values of each curve"):
        curves("A title", {"blocks": {}}, x="M", y="useful")
