"""Quantities relative to one run, held against plain divisions."""

import pytest

from labkit.views import relative

VALUES = {
    "before": {"loads": 32, "time": 8.0},
    "between": {"loads": 8, "time": 6.0},
    "after": {"loads": 2, "time": 6.0},
}


def test_the_sentence_compares_the_last_run_with_the_baseline():
    view = relative(VALUES, "before", title="Fewer loads")
    assert view.sentence == "after compared with before: 0.0625x loads and 0.75x time."
    assert view.title == "Fewer loads"


def test_the_table_has_the_values_themselves():
    data = relative(VALUES, "before", title="").data["table"]
    assert data["columns"] == ["quantity", "before", "between", "after"]
    assert data["rows"] == [["loads", "32", "8", "2"], ["time", "8", "6", "6"]]


def test_bars_are_multiples_of_the_baseline_whose_line_is_at_1(tmp_path):
    view = relative(VALUES, "before", title="")
    for text in ("0.0625", "0.25", "0.75", "relative to before"):
        assert text in view.data["charts"]["wide"]
    view.save_png(tmp_path / "relative.png")
    assert (tmp_path / "relative.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("values", "baseline", "words"),
    [
        (VALUES, "never", "no 'never' to compare with: choose one of before, between and after"),
        ({"a": {"x": 1}, "b": {"y": 1}}, "a", "b and a have different quantities"),
        ({"a": {"x": 0}, "b": {"x": 1}}, "a", "a has 0 x, and nothing is a multiple of 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(values, baseline, words):
    with pytest.raises(ValueError, match=words):
        relative(values, baseline, title="")
