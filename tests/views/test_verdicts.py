"""Claims counted by verdict."""

import pytest

from labkit.views import verdicts

COUNTS = {"Products": {"confirmed": 2, "open": 0}, "Memory": {"confirmed": 1, "open": 4}}


def test_the_sentence_has_the_totals():
    view = verdicts(COUNTS, title="3 claims hold")
    assert view.title == "3 claims hold"
    assert view.sentence == "Of 7 claims, 3 confirmed and 4 open."


def test_the_table_has_the_parts():
    data = verdicts(COUNTS, title="").data["table"]
    assert data["columns"] == ["verdict", "Products", "Memory", "all"]
    assert data["rows"] == [["confirmed", "2", "1", "3"], ["open", "0", "4", "4"]]


def test_each_verdict_has_a_bar(tmp_path):
    view = verdicts(COUNTS, title="")
    for text in ("confirmed", "open", "claims: number"):
        assert text in view.data["charts"]["wide"]
    view.save_png(tmp_path / "verdicts.png")
    assert (tmp_path / "verdicts.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "no verdicts to count"),
        ({"a": {"open": 1}, "b": {"closed": 1}}, "a has other verdicts|b has other verdicts|other verdicts"),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts, words):
    with pytest.raises(ValueError, match=words):
        verdicts(counts, title="")
