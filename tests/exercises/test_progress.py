"""Checks are noted in a learner's workspace, and only there."""

import json

import pytest

from labkit import cuda
from labkit.book import progress as shown
from labkit.book.workspace import copy_chapters
from labkit.checking.verdict import Verdict
from labkit.exercises import chapter_of, check, exercise, exercise_ids
from labkit.exercises.contents import book_contents
from labkit.exercises.progress import LEDGER, PROGRESS, WORK_LOG, note, read

FIRST, SECOND = exercise_ids()[:2]
RETIRED = "keep-a-column"


def verdict(id, passed):
    rules = exercise(id)
    return Verdict(id, rules.title, rules.points, "solved" if passed else "result", "")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / LEDGER).write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_in_a_workspace_is_noted(workspace):
    @cuda.jit
    def kernel(x, out):
        pass

    check(FIRST, kernel)
    assert read() == {FIRST: 0}
    assert json.loads((workspace / PROGRESS).read_text(encoding="utf-8"))["reason"] != "solved"


@pytest.mark.parametrize(
    ("course", "is_kept"),
    [('{"work_log": true}', True), ('{"work_log": false}', False), ("{}", False), ("[]", False), ("{", False)],
)
def test_a_course_that_keeps_a_work_log_has_one_beside_the_notebooks(tmp_path, course, is_kept):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "course.json").write_text(course, encoding="utf-8")
    note(verdict(FIRST, False), tmp_path / "notebooks")
    assert [path.name for path in (tmp_path / "notebooks").iterdir()] == [WORK_LOG] * is_kept
    if is_kept:
        row = json.loads((tmp_path / "notebooks" / WORK_LOG).read_text(encoding="utf-8"))
        assert (row.pop("time")[:2], row) == ("20", {"exercise": FIRST, "points": 0, "reason": "result"})


def test_a_solved_exercise_stays_solved(workspace):
    for passed in (False, True, False):
        note(verdict(FIRST, passed))
    note(verdict(SECOND, False))
    assert read() == {FIRST: exercise(FIRST).points, SECOND: 0}
    assert [shown().state(id) for id in exercise_ids()[:3]] == ["solved", "tried", "open"]
    assert repr(shown()).startswith(f"1 of {len(exercise_ids())} exercises solved, {exercise(FIRST).points} of ")
    assert "1 of" in shown()._repr_html_()


def test_outside_of_a_workspace_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note(verdict(FIRST, True))
    assert list(tmp_path.iterdir()) == []
    assert read() == {}


def test_a_newer_edition_leaves_progress_alone(tmp_path):
    notebooks, mine = tmp_path / "notebooks", tmp_path / "mine"
    notebooks.mkdir()
    (notebooks / "00-start-here.ipynb").write_text("first edition", encoding="utf-8")
    copy_chapters(mine, notebooks)
    note(verdict(FIRST, True), mine)
    (notebooks / "00-start-here.ipynb").write_text("second edition", encoding="utf-8")
    copy_chapters(mine, notebooks)
    assert read(mine) == {FIRST: exercise(FIRST).points}


def test_points_of_an_exercise_that_left_the_book_stay(workspace):
    out_of = sum(exercise(id).points for id in exercise_ids())
    note(verdict(RETIRED, False))
    assert shown().sentence.endswith(f" of {len(exercise_ids())} exercises solved, 0 of {out_of} points.")
    note(verdict(RETIRED, True))
    points = exercise(RETIRED).points
    count = len(exercise_ids()) + 1
    assert shown().sentence == f"1 of {count} exercises solved, {points} of {out_of + points} points."
    (row,) = [line for line in repr(shown()).splitlines() if "✓" in line]
    assert row.startswith(book_contents().chapter(chapter_of(RETIRED)).number)
    assert f"{points} of " in shown()._repr_html_()


def test_an_exercise_named_by_number_in_an_earlier_edition_counts(workspace):
    (workspace / PROGRESS).write_text('{"exercise": "03.2", "points": 2}\n', encoding="utf-8")
    (id,) = read()
    assert id in exercise_ids()


@pytest.mark.parametrize("line", ["", "{", "[]", '{"exercise": 1}', '{"exercise": "x", "points": "many"}'])
def test_a_broken_line_costs_no_other(workspace, line):
    note(verdict(FIRST, True))
    with (workspace / PROGRESS).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    note(verdict(SECOND, True))
    assert {FIRST, SECOND} <= read().keys()


def test_a_disk_that_cannot_be_written_keeps_the_verdict(workspace):
    (workspace / PROGRESS).mkdir()
    note(verdict(FIRST, True))
    assert read() == {}
