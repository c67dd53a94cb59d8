"""The bench of the chooser: which of the timed algorithms are marked as chosen."""

from types import SimpleNamespace

from labkit import conv
from labkit.bench import _harness, conv_choices


def test_each_row_tells_what_was_predicted_and_chosen(monkeypatch):
    layer = conv.Forward(2, 4, 9, 8, 6, 3, 3)
    predicted = conv.heuristic(layer)
    third = predicted[2].algorithm

    def measure(table, problem, format):
        assert table.name == "conv_choices"
        assert {*table.ours} == {str(one) for one in predicted.candidates}
        return [{"step": name, "problem": str(problem), "time_ms": 1.0 + n} for n, name in enumerate(table.ours)]

    monkeypatch.setattr(_harness, "measure", measure)
    monkeypatch.setattr(conv_choices.conv, "find", lambda problem: SimpleNamespace(best=third), raising=False)
    rows = conv_choices.measure(layer, "conv_choices")
    assert [row["step"] for row in rows if row["is_predicted_best"]] == [str(predicted.best)]
    assert [row["step"] for row in rows if row["is_found_best"]] == [str(third)]
    assert [row["workspace_bytes"] for row in rows] == [row.workspace_bytes for row in predicted if not row.reason]
    (line,) = conv_choices.summary(rows)
    assert (line["heuristic"], line["find"], line["loss"]) == (str(predicted.best), str(third), 0)
