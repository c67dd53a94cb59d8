"""Rosters, deadlines, points by hand, and which of several answers counts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labkit.grading.collected import Collected, read_collected
from labkit.grading.grades import Grade
from labkit.grading.policy import Deadline, apply_points_by_hand, choose_best, parse_time
from labkit.grading.roster import RosterError, identify_student, read_roster

DUE = datetime(2026, 11, 20, 12, tzinfo=UTC)


def row(points, file="a.ipynb", exercise="write-saxpy", reason="result", student="ann"):
    return Grade(student, file, exercise, points, 4, "", reason="solved" if points == 4 else reason)


def committed(late_h):
    return Collected("ann", committed=(DUE + timedelta(hours=late_h)).isoformat())


@pytest.mark.parametrize(
    ("late_h", "percent", "points"),
    [(-1, 10, 4), (0, 10, 4), (1, 10, 3.6), (24, 10, 3.6), (25, 10, 3.2), (24 * 30, 10, 0), (1, 100, 0), (1, 0, 4)],
)
def test_each_day_begun_costs_its_share(late_h, percent, points):
    graded = Deadline(DUE, percent).apply(row(4), committed(late_h))
    assert graded.points == points
    assert ("Late" in graded.late) == (late_h > 0)


def test_a_day_alone_ends_at_midnight():
    assert parse_time("2026-11-30").isoformat()[:19] == "2026-11-30T23:59:59"
    assert parse_time("2026-11-30T00:00").isoformat()[:19] == "2026-11-30T00:00:00"
    assert parse_time("2026-11-30T12:00+01:00") == datetime(2026, 11, 30, 11, tzinfo=UTC)
    with pytest.raises(ValueError, match="'Monday' is not a time: write 2026-11-30, 2026-11-30T23:59 or"):
        parse_time("Monday")


def test_without_a_commit_time_nothing_is_taken_and_it_is_said():
    for collected in (None, Collected("ann")):
        graded = Deadline(DUE).apply(row(4), collected)
        assert graded.points == 4 and "No commit time" in graded.late
    assert Deadline(DUE, 10).apply(row(None), committed(24)).points is None


def test_the_best_of_several_answers_counts():
    rows = [row(0, "a"), row(4, "b"), row(0, "c", reason="missing"), row(0, "a", "rows-and-columns")]
    first, second = choose_best(rows)
    assert (first.points, first.submission, first.note) == (4, "b", "The best of 2 answers.")
    assert (second.exercise, second.note) == ("rows-and-columns", "")
    assert choose_best([row(0, "a"), row(None, "b")])[0].points is None
    assert choose_best([row(4, "a"), row(None, "b")])[0].points == 4
    assert choose_best([row(0, "a", reason="missing"), row(0, "b")])[0].submission == "b"


def test_files_without_an_exercise_keep_their_rows():
    rows = [row(0, "a", ""), row(0, "b", "")]
    assert choose_best(rows) == rows


@pytest.mark.parametrize("collected", [None, committed(24)])
def test_lateness_is_not_spoken_of_where_there_is_nothing_to_lose(collected):
    assert Deadline(DUE, 10).apply(row(0), collected) == row(0)
    assert Deadline(DUE, 10).apply(row(None), collected).late  # the teacher must know


def given_by_hand(tmp_path, rows, text):
    table = tmp_path / "manual.csv"
    table.write_text(text, encoding="utf-8")
    return apply_points_by_hand(rows, table)


def test_points_by_hand_replace_those_of_the_judge(tmp_path):
    text = "student,exercise,points,comment\nann,write-saxpy,3.5,a good idea\n"
    (graded,) = given_by_hand(tmp_path, [row(None)], text)
    assert (graded.points, graded.by_hand) == (3.5, "Points given by hand. a good idea")


def test_a_comment_is_no_duty(tmp_path):
    (graded,) = given_by_hand(tmp_path, [row(0)], "student,exercise,points\nann,write-saxpy,4\n")
    assert (graded.points, graded.by_hand) == (4, "Points given by hand.")


def test_points_by_hand_are_not_those_of_a_late_answer(tmp_path):
    late = Deadline(DUE, 10).apply(row(4), committed(25))
    (graded,) = given_by_hand(tmp_path, [late], "student,exercise,points\nann,write-saxpy,4\n")
    assert (graded.points, graded.late) == (4, "")


@pytest.mark.parametrize("points", ["4.5", "-1"])
def test_points_beyond_the_exercise_s_are_given_on_purpose_alone(tmp_path, points):
    with pytest.raises(RosterError, match=f"ann gets {points} of 4 points for write-saxpy; give 0 to 4"):
        given_by_hand(tmp_path, [row(0)], f"student,exercise,points\nann,write-saxpy,{points}\n")
    with pytest.raises(RosterError, match="column `extra`"):
        given_by_hand(tmp_path, [row(0)], f"student,exercise,points,extra\nann,write-saxpy,{points},\n")
    (graded,) = given_by_hand(tmp_path, [row(0)], f"student,exercise,points,extra\nann,write-saxpy,{points},yes\n")
    assert graded.points == float(points)


@pytest.mark.parametrize("points", ["", "many", "nan", "inf"])
def test_what_is_no_number_of_points_is_refused(tmp_path, points):
    with pytest.raises(RosterError, match="not a number of points"):
        given_by_hand(tmp_path, [row(0)], f"student,exercise,points,extra\nann,write-saxpy,{points},yes\n")


def test_a_roster_has_each_student_once(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes(b"\xef\xbb\xbfstudent,repository\r\nann,x\r\n,\r\nben\r\nann,y\r\n")
    assert read_roster(path) == {"ann": {}, "ben": {}}
    with pytest.raises(RosterError, match="cannot be read"):
        read_roster(tmp_path / "absent.csv")
    path.write_text("Name;Student ;Email\nAnn, A.;ann;a@x\n")
    assert read_roster(path) == {"ann": {"name": "Ann, A.", "email": "a@x"}}
    path.write_text("name;email\n")
    with pytest.raises(RosterError, match="has no column `student`; the first line has name, email"):
        read_roster(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("student,name\nann,Lovelace, Ada\n", "line 2 of .* has 3 fields, and the first line names 2; put a text"),
        ("student;name\nann;A\n\nben;B;C\n", "line 4 of .* has 3 fields"),
        ("student,Student\nann,ben\n", "has the column `student` twice; leave one"),
    ],
)
def test_a_table_with_fields_of_no_column_is_refused(tmp_path, text, said):
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(RosterError, match=said):
        read_roster(tmp_path / "roster.csv")


def test_empty_fields_at_the_end_of_a_line_are_a_spreadsheet_s(tmp_path):
    (tmp_path / "roster.csv").write_text("student,\nann,,,\n")
    assert read_roster(tmp_path / "roster.csv") == {"ann": {}}


def test_the_ledger_of_a_collection_tells_the_times(tmp_path):
    (tmp_path / "collected.json").write_text(
        '[{"student": "ann", "committed": "2026-11-20T13:00:00+01:00"}, {"student": "ben", "problem": "Not fetched."}]'
    )
    ledger = read_collected(tmp_path / "collected.json")
    assert ledger["ann"].time == DUE
    assert ledger["ben"] == Collected("ben", problem="Not fetched.")


@pytest.mark.parametrize(
    ("path", "root", "roots", "student"),
    [
        ("class/ann/notebooks/03.ipynb", "class", "class", "ann"),
        ("class/ann/03.ipynb", "class/ann", "class/ann class/ben", "ann"),
        ("class/03-ben.ipynb", "class", "class", "03-ben"),
        ("ann.ipynb", "ann.ipynb", "ann.ipynb ben.ipynb", "ann"),
        ("a/03.ipynb", "a/03.ipynb", "a/03.ipynb b/03.ipynb", "a/03"),
        ("term/group-1/GRACE/03.ipynb", "term", "term", "grace"),
        ("class/eve\x1b/03.ipynb", "class", "class", "eve\\x1b"),
    ],
)
def test_whose_a_file_is(path, root, roots, student):
    assert identify_student(Path(path), Path(root), [Path(one) for one in roots.split()], ["grace"]) == student
