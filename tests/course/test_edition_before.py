"""What the edition before wrote, when exercises were named by number, opens and is graded as what it was then.

`edition_before.json` has the code of a chapter as that edition handed it out.
"""

import hashlib
import json
from pathlib import Path

import pytest

from labkit import places
from labkit.book.workspace import copy_chapters
from labkit.checking.source import run_cell
from labkit.course.checking import check_course
from labkit.exercises import exercise, exercise_ids, known_ids
from labkit.exercises.contents import CONTENTS_FILE, Chapter, Contents, book_contents
from labkit.grading.assessment import Assessment
from labkit.grading.course import Course
from labkit.grading.grade import grade
from labkit.grading.rebuild import read_chapters, read_solved_chapters, rebuild
from labkit.grading.submission import read_submission

CHAPTER = "03-tiled-gemm.ipynb"
BEFORE = Path(__file__).with_name("edition_before.json")
THEN = {
    "03.1": "put-the-barrier-back",
    "03.2": "pad-the-tile",
    "03.3": "choose-the-tile",
    "03.4": "write-the-tiled-matmul",
}
COURSE = {"assignment": "hw2", "chapters": ["03-tiled-gemm"], "points": {"03.1": 2, "03.2": 3, "03.4": 4}}


def solved(*ids):
    """The chapter as that edition handed it out, with the book's answers to exercises, which have ids of then."""
    answers = {cell.id: cell.source for cell in read_solved_chapters()["tiled-gemm"].cells}
    notebook = json.loads(BEFORE.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for id in ids:
            if cell["id"] == f"exercise-{id.replace('.', '-')}":
                cell["source"] = answers[f"exercise-{THEN[id]}"]
    return notebook


@pytest.fixture
def course(tmp_path):
    """A student's folder of the course, as it was released then; three of four exercises are solved, one is wrong."""
    notebook = solved("03.1", "03.2", "03.4")
    text = json.dumps(notebook).replace("WIDTH = TILE + 1", "WIDTH = TILE")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / CHAPTER).write_text(text, encoding="utf-8")
    (tmp_path / "course.json").write_text(json.dumps(COURSE), encoding="utf-8")
    return tmp_path


def test_its_cells_are_read_as_the_exercises_that_they_were():
    submission = read_submission(BEFORE)
    assert submission.chapter == "tiled-gemm"
    assert [*submission.answers] == [*THEN.values()]
    assert not submission.refused and not submission.recovered


def test_an_exercise_that_it_did_not_have_is_none_of_ours(tmp_path):
    cell = {"cell_type": "code", "id": "exercise-03-5", "metadata": {}, "source": "def transpose(A, T):\n    pass"}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    assert not read_submission(tmp_path / "a.ipynb").answers


def test_its_course_is_graded_with_its_points(course):
    of = Course.read(course / "course.json")
    assert of.points == {"put-the-barrier-back": 2, "pad-the-tile": 3, "write-the-tiled-matmul": 4}
    (course / "points.csv").write_text("student,exercise,points\n03-tiled-gemm,03.2,1\n", encoding="utf-8")
    assessment = Assessment(points=of.points, assignment=of.assignment, by_hand=course / "points.csv")
    grades = grade([course / "notebooks" / CHAPTER], course / "grades", assessment, seed=1)
    assert {row.exercise: row.points for row in grades} == {
        "put-the-barrier-back": 2,
        "pad-the-tile": 1,
        "write-the-tiled-matmul": 4,
    }


def test_its_course_says_how_its_exercises_stand(course):
    rows = list(check_course(Course.read(course / "course.json"), course))
    assert [(row.exercise, row.points) for row in rows] == [
        ("put-the-barrier-back", 2),
        ("pad-the-tile", 0),
        ("write-the-tiled-matmul", 4),
    ]


RETIRED = "keep-a-column"  # 05.1 then, and in no chapter now
SOLVED = Path(__file__).parents[1].joinpath("exercises", "retired", f"{RETIRED}.txt").read_text(encoding="utf-8")


def hand_in_retired(folder, answer):
    """Write a notebook of that edition's chapter on register tiles, with this answer to its first exercise."""
    cell = {"cell_type": "code", "id": "exercise-05-1", "metadata": {}, "source": answer, "outputs": []}
    notebook = {"cells": [cell], "metadata": {"labkit": {"chapter": "05-register-tiles"}}, "nbformat": 4}
    path = folder / "05-register-tiles.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_an_exercise_that_left_the_book_is_graded_in_its_course(tmp_path):
    (tmp_path / "course.json").write_text(
        json.dumps({"assignment": "hw4", "chapters": ["05-register-tiles"], "points": {"05.1": 5}}), encoding="utf-8"
    )
    assessment = Assessment(points=Course.read(tmp_path / "course.json").points)
    for answer, points in ((SOLVED, 5), ("def column_matmul(alpha, A, B, C): ...", 0)):
        (row,) = grade([hand_in_retired(tmp_path, answer)], tmp_path / f"grades {points}", assessment, seed=1)
        assert (row.exercise, row.points, row.out_of) == (RETIRED, points, 5), row


def test_an_exercise_that_left_the_book_is_missing_to_nobody_else(tmp_path):
    path = hand_in_retired(tmp_path, SOLVED)
    now = exercise_ids("register-tiles")
    grades = grade([path], tmp_path / "grades", Assessment(students={"ann": {}}), seed=1)
    assert {row.exercise: row.reason for row in grades if row.student != "ann"} == {
        **dict.fromkeys(now, "missing"),
        RETIRED: "solved",
    }
    assert {row.exercise for row in grades if row.student == "ann"} == {*now}


def test_an_answer_to_an_exercise_that_left_the_book_runs_after_the_chapter():
    cells = rebuild(read_chapters()["register-tiles"], {RETIRED: SOLVED}).cells
    assert cells[-1].id == f"exercise-{RETIRED}" and cells[-1].source == SOLVED
    assert "from labkit import" in cells[0].source and len(cells) == 2


def test_its_checks_still_check():
    names = {}
    for number, cell in enumerate(solved(*THEN)["cells"]):
        tags, text = cell["metadata"].get("tags", ()), "".join(cell["source"])
        if {"setup", "exercise"} & set(tags):
            names = run_cell(text, f"<cell {number} of the edition before>", names)
        elif "check" in tags:
            verdict = eval(text, names)
            assert verdict.passed and verdict.exercise == THEN[cell["metadata"]["exercise"]], verdict


def test_its_workspace_gets_the_new_edition_and_keeps_what_its_learner_wrote(tmp_path):
    mine, other = tmp_path / "mine" / CHAPTER, tmp_path / "other" / CHAPTER
    for path in (mine, other):
        path.parent.mkdir()
        path.write_bytes(BEFORE.read_bytes())
        digest = hashlib.sha256(BEFORE.read_bytes()).hexdigest()
        (path.parent / ".labkit.json").write_text(json.dumps({CHAPTER: digest}), encoding="utf-8")
    other.write_text(json.dumps(solved("03.1")), encoding="utf-8")
    kept = other.read_bytes()
    now = f"{book_contents().chapter('tiled-gemm').name}.ipynb"
    assert [line for line in copy_chapters(mine.parent) if line.startswith(f"Updated: {now}, ")]
    assert (mine.parent / now).read_bytes() == (places.folder("notebooks") / now).read_bytes()
    assert any("yours is untouched" in line for line in copy_chapters(other.parent))
    assert other.read_bytes() == kept
    assert copy_chapters(mine.parent) == copy_chapters(other.parent) == []


def test_its_ids_mean_the_same_exercises_whatever_their_numbers_become(monkeypatch):
    before = exercise("pad-the-tile").number
    chapters = [Chapter(each.slug, f"{int(each.number) + 1:02}", each.exercises) for each in book_contents().chapters]
    for module in ("labkit.exercises", "labkit.exercises.contents"):
        monkeypatch.setattr(f"{module}.book_contents", lambda: Contents(tuple(chapters)))
    exercise.cache_clear()
    numbers = {id: Contents(tuple(chapters)).number(id) for id in exercise_ids()}
    assert numbers["pad-the-tile"] != before
    try:
        assert exercise("pad-the-tile").number == numbers["pad-the-tile"]
        assert [exercise(id).id for id in THEN] == [*THEN.values()]
    finally:
        exercise.cache_clear()


def test_every_one_of_its_ids_still_names_an_exercise():
    ids = json.loads(CONTENTS_FILE.with_name("old_ids.json").read_text(encoding="utf-8"))
    assert len(ids) == 64 and set(ids.values()) <= {*known_ids()}
