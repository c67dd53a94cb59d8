"""Findings stand under their lines, worst first, with words as well as colours."""

from dataclasses import replace

from labkit.trace import Finding, ThreadId
from labkit.views.findings import findings
from tests.views.made import trace
from tests.views.test_replay import loop_trace

SOURCE = "@cuda.jit\ndef reverse(s, out):\n    s[i] = x[i]\n    out[i] = s[63 - i]\n"
ARRAYS = {"s": ((64,), 0), "x": ((64,), 4096)}
THREADS = (ThreadId((0, 0, 0), (0, 0, 0)), ThreadId((0, 0, 0), (63, 0, 0)))
RACE = Finding("race", "error", "Both touch s[0].", 4, 8, "s", (0,), THREADS, other_line=3, count=64)
ADVICE = Finding("uncoalesced", "advice", "Apart.", 3, 11)


def view(*found):
    return findings(trace([(3, "s", [0]), (4, "s", [0])], ARRAYS, findings=found, source=SOURCE))


def notes(shown):
    return {line["number"]: line["notes"] for line in shown.data["lines"]}


def test_a_race_is_marked_at_both_lines_with_its_threads():
    marked = notes(view(RACE))
    (there,), (other,) = marked[4], marked[3]
    assert there["mark"] == "✖ error: race"
    assert there["threads"] == ["thread 0 of block 0", "thread 63 of block 0"]
    assert there["times"] == "64 times"
    assert "line 4" in other["message"]
    assert marked[1] == marked[2] == []


def test_a_deadlock_is_marked_at_both_waits():
    stuck = replace(RACE, kind="deadlock", message="Both wait.")
    (other,) = notes(view(stuck))[3]
    assert other["mark"] == "✖ the other wait of the deadlock"
    assert other["message"] == "Neither this one nor that of line 4 ends."


def test_the_caret_is_as_wide_as_the_access():
    (note,) = notes(view(RACE))[4]
    assert (note["column"], note["width"]) == (8, len("s[i]"))


def test_lines_are_numbered_as_in_the_notebook():
    shown = findings(trace([], {}, source=SOURCE, first_line=20))
    assert [line["number"] for line in shown.data["lines"]] == [20, 21, 22, 23]


def test_the_summary_counts_and_advice_is_no_error():
    assert repr(view(RACE, ADVICE)) == "1 error and 1 piece of advice."
    assert repr(view(ADVICE)) == "No errors and 1 piece of advice."
    assert repr(view()) == "Nothing wrong was found in this run."


def test_the_table_lists_errors_first():
    rows = view(ADVICE, RACE).data["table"]["rows"]
    assert [row[0] for row in rows] == ["✖ error", "◆ advice"]


def test_source_cannot_break_out_of_the_page():
    shown = findings(trace([], {}, source="x = '</script><b>'"))
    assert "</script><b>" not in shown.to_html()


def test_a_still_picture_is_drawn(tmp_path):
    view(RACE, ADVICE).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 3000


def test_the_line_is_not_said_twice():
    (note,) = notes(view(Finding("uncoalesced", "advice", "Line 3: one warp reads far apart.", 3, 11)))[3]
    assert note["message"] == "One warp reads far apart."


def test_a_loops_findings_are_shown_too():
    shown = findings(replace(loop_trace([0]), findings=(ADVICE,), source=SOURCE))
    assert notes(shown)[3][0]["mark"] == "◆ advice: uncoalesced"
