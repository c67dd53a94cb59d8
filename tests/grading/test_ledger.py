"""The rows of a class: what is said of answers that are right, missing, or the book's own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from handed_in import hand_in, solutions

from labkit.exercises import exercise, exercise_ids
from labkit.grading import grade as grade_module
from labkit.grading.assessment import Assessment
from labkit.grading.collected import Collected
from labkit.grading.files import LATE
from labkit.grading.grade import read_files
from labkit.grading.grades import Grade
from labkit.grading.judge import SOLVED, Judgement
from labkit.grading.ledger import HandedIn, Ledger
from labkit.grading.policy import Deadline, LatePolicy
from labkit.grading.reports.page import make_page
from labkit.grading.roster import RosterError
from labkit.grading.submission import Submission, find_submissions


def handed_in(chapter, **more):
    """Ann's notebook with the book's own answers."""
    return HandedIn("a.ipynb", "ann", Submission(Path("a.ipynb"), solutions(chapter), chapter=chapter, **more))


def test_of_right_answers_alone_it_is_told_that_they_are_the_book_s():
    ledger = Ledger([handed_in("tiled-gemm")], Assessment(), seed=1)
    ledger.add_judgement("a.ipynb", "put-the-barrier-back", Judgement(SOLVED, "Solved."))  # an answer of one line
    ledger.add_judgement("a.ipynb", "write-the-tiled-matmul", Judgement(SOLVED, "Solved."))
    assert [row.verbatim for row in ledger.grades()] == [False, False, False, True, False]
    ledger.add_judgement("a.ipynb", "write-the-tiled-matmul", Judgement("result", "Wrong."))
    assert not any(row.verbatim for row in ledger.grades())


IDS = [*exercise_ids("tiled-gemm")]
FAILED = Collected("cleo", problem="Not fetched: git clone failed: /home/prof/cleo.git is away.", fetched=False)


@pytest.mark.parametrize(
    ("roots", "names"),
    [
        (["class"], ["ann/02.ipynb", "ben/02.ipynb"]),
        (["class/ann"], ["02.ipynb"]),
        (["class/ann", "class/ben"], ["ann/02.ipynb", "ben/02.ipynb"]),
        (["class/ann/02.ipynb", "class/ben/02.ipynb"], ["ann/02.ipynb", "ben/02.ipynb"]),
    ],
)
def test_files_are_named_without_the_grader_s_folders(tmp_path, roots, names):
    for student in ("ann", "ben"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "02.ipynb").write_text("{}")
    paths = [tmp_path / root for root in roots]
    assert [file.name for file in grade_module.read_files(find_submissions(paths)[0], paths, Assessment())] == names


def test_points_by_hand_for_an_unknown_student_are_refused_before_judging(tmp_path, monkeypatch):
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "02.ipynb").write_text("{}")
    (tmp_path / "manual.csv").write_text("student,exercise,points\nanne,write-saxpy,1\n")
    monkeypatch.setattr(grade_module, "judge_tasks", lambda *_: pytest.fail("judged first"))
    with pytest.raises(RosterError, match="anne has no exercise write-saxpy"):
        grade_module.grade([tmp_path], tmp_path / "out", Assessment(by_hand=tmp_path / "manual.csv"))


def test_work_that_was_not_fetched_is_no_zero():
    students = {"ann": {}, "bob": {}, "cleo": {}, "dan": {}}
    collected = {"ann": Collected("ann", commit="a1", notebooks=1), "bob": Collected("bob"), "cleo": FAILED}
    ledger = Ledger([handed_in("tiled-gemm")], Assessment(students, collected=collected), seed=1)
    rows = ledger.grades()
    points = {name: {row.points for row in rows if row.student == name} for name in ("bob", "cleo", "dan")}
    assert points == {"bob": {0}, "cleo": {None}, "dan": {None}}
    said = {row.student: row.message for row in rows}
    assert said["bob"] == "Nothing was handed in: your repository has no commit that counts."
    assert (
        said["cleo"] == said["dan"] == "Not graded: your repository could not be fetched. This does not count as zero."
    )


def test_what_was_left_out_is_named_where_work_is_missing():
    large = "02.ipynb has 31.0 MB, and 16 MB are the limit"
    collected = {"bob": Collected("bob", commit="b1", left_out=(large,))}
    ledger = Ledger([handed_in("tiled-gemm")], Assessment({"bob": {}}, collected=collected), seed=1)
    said = {row.message for row in ledger.grades() if row.student == "bob"}
    assert said == {f"Nothing was handed in. No notebook was taken from commit b1. Left out: {large}."}


def unreadable(name, chapter):
    return HandedIn(name, "ann", Submission(Path(name), chapter=chapter, complaint="Cut off."))


def test_the_row_of_each_exercise_names_the_file_that_could_not_be_read():
    assessment = Assessment(points={id: exercise(id).points for id in [*IDS, "write-saxpy"]})
    rows = {row.exercise: row for row in Ledger([unreadable("ann/03.ipynb", "tiled-gemm")], assessment, 1).grades()}
    assert {(rows[id].message, rows[id].reason) for id in IDS} == {("03.ipynb: Cut off.", "unreadable")}
    assert rows["write-saxpy"].message == "Nothing was handed in."
    rows = {row.exercise: row for row in Ledger([unreadable("ann/x.ipynb", "")], assessment, 1).grades()}
    assert {rows[id].message for id in (*IDS, "write-saxpy")} == {"x.ipynb: Cut off."}


def test_a_file_that_could_not_be_read_stands_behind_one_that_could():
    ledger = Ledger([unreadable("b.ipynb", "tiled-gemm"), handed_in("tiled-gemm")], Assessment(), 1)
    ledger.add_judgement("a.ipynb", IDS[0], Judgement(SOLVED, "Solved."))
    ledger.add_judgement("a.ipynb", IDS[1], Judgement("result", "Wrong."))
    solved, wrong, *_ = ledger.grades()
    assert (solved.points, solved.note) == (2, "")
    assert (wrong.message, wrong.note) == ("Wrong.", "b.ipynb: Cut off.")


def test_the_better_of_the_answers_in_time_and_late_counts():
    due = datetime(2026, 11, 20, tzinfo=UTC)
    times = {"committed": due.isoformat(), "late_committed": (due + timedelta(hours=30)).isoformat()}
    collected = {"ann": Collected("ann", commit="a1", late_commit="a2", notebooks=1, **times)}
    late = replace(handed_in("tiled-gemm"), name=f"{LATE}/ann/a.ipynb", is_late=True)
    assessment = Assessment(collected=collected, deadline=Deadline(due, 10))
    ledger = Ledger([late, handed_in("tiled-gemm")], assessment, seed=1)
    reasons = {IDS[0]: ("result", SOLVED), IDS[1]: (SOLVED, SOLVED), IDS[2]: ("race", "result")}
    for id, words in reasons.items():
        for name, reason in zip(("a.ipynb", late.name), words, strict=True):
            ledger.add_judgement(name, id, Judgement(reason, reason))
    rows = {row.exercise: row for row in ledger.grades()}
    worth = exercise(IDS[0]).points
    assert (rows[IDS[0]].points, rows[IDS[0]].late) == (0.8 * worth, "Late by 2 days: 80% of the points count.")
    assert (rows[IDS[1]].points, rows[IDS[1]].late) == (exercise(IDS[1]).points, "")
    assert (rows[IDS[2]].points, rows[IDS[2]].submission) == (0, late.name)  # the last of two without points


def test_by_the_policy_last_a_late_commit_counts_alone(tmp_path):
    for name in ("ann", f"{LATE}/ann", "ben"):
        hand_in(tmp_path / name / "03.ipynb", "tiled-gemm")
    late = {"commit": "a1", "late_commit": "a2"}  # which has no notebook of cleo's any more
    collected = {"ann": Collected("ann", **late), "ben": Collected("ben"), "cleo": Collected("cleo", **late)}
    hand_in(tmp_path / "cleo" / "03.ipynb", "tiled-gemm")

    def names(late_policy):
        assessment = Assessment(collected=collected, late_policy=late_policy)
        found, _ = find_submissions([tmp_path])
        return {file.name for file in read_files(found, [tmp_path], assessment)}

    in_time = {"ann/03.ipynb", "cleo/03.ipynb"}
    assert names(LatePolicy.BETTER) - names(LatePolicy.LAST) == in_time
    assert names(LatePolicy.LAST) == {f"{LATE}/ann/03.ipynb", "ben/03.ipynb"}
    rows = [Grade("cleo", "", IDS[0], 0, 2, "Nothing was handed in.", 7, "missing")]
    assessment = Assessment(collected=collected, late_policy=LatePolicy.LAST)
    assert "Late commit a2: it alone counts." in make_page("cleo", rows, {}, {}, assessment)


def test_a_student_s_own_folder_of_that_name_is_not_counted_in_time():
    due = datetime(2026, 11, 20, tzinfo=UTC)
    collected = {"ann": Collected("ann", commit="a1", committed=(due + timedelta(hours=1)).isoformat())}
    file = replace(handed_in("tiled-gemm"), is_late=True)
    ledger = Ledger([file], Assessment(collected=collected, deadline=Deadline(due)), seed=1)
    ledger.add_judgement(file.name, IDS[0], Judgement(SOLVED, "Solved."))
    assert ledger.grades()[0].points == 0


def test_without_a_roster_the_students_of_the_collection_are_those_of_the_class():
    ledger = Ledger([handed_in("tiled-gemm")], Assessment(collected={"cleo": FAILED}), seed=1)
    assert [row.exercise for row in ledger.grades() if row.student == "cleo"] == IDS


def test_where_no_exercise_is_known_work_that_was_not_fetched_has_a_row():
    (row,) = Ledger([], Assessment({"cleo": {}}, collected={"cleo": FAILED}), seed=1).grades()
    assert (row.student, row.exercise, row.points, row.reason) == ("cleo", "", None, "not graded")


def test_of_an_earlier_collection_full_points_alone_count():
    collected = {"ann": Collected("ann", commit="a1", notebooks=1, fetched=False)}
    assessment = Assessment(collected=collected, points=dict.fromkeys([*IDS, "write-saxpy"], 2))
    ledger = Ledger([handed_in("tiled-gemm")], assessment, seed=1)
    ledger.add_judgement("a.ipynb", IDS[0], Judgement(SOLVED, "Solved."))
    ledger.add_judgement("a.ipynb", IDS[1], Judgement("result", "Wrong."))
    rows = {row.exercise: row for row in ledger.grades()}
    assert [rows[id].points for id in (*IDS[:2], "write-saxpy")] == [2, None, None]
    assert all("could not be fetched" in row.said for row in rows.values())
