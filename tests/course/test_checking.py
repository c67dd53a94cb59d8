"""What a student is told of the notebooks as they lie there."""

import json

import nbformat
import pytest

from labkit import places
from labkit.course.checking import Checked, check_course, summary
from labkit.exercises import exercise
from labkit.exercises.contents import book_contents
from labkit.grading.course import Course

CHAPTER = book_contents().chapter("tiled-gemm").name
COURSE = Course(
    "hw2",
    (CHAPTER, book_contents().chapter("trusting-the-simulator").name),
    {"put-the-barrier-back": 2, "pad-the-tile": 2, "write-the-tiled-matmul": 4},
)


@pytest.fixture
def notebook(tmp_path):
    """Writes a solved chapter with changes made to its exercise cells, or to it whole."""
    (tmp_path / "notebooks").mkdir()

    def write(change=lambda cells: None, text=None):
        solved = nbformat.read(places.folder("notebooks") / "solutions" / f"{CHAPTER}.ipynb", as_version=4)
        change({cell.id: cell for cell in solved.cells})
        path = tmp_path / "notebooks" / f"{CHAPTER}.ipynb"
        path.write_text(json.dumps(solved) if text is None else text, encoding="utf-8")
        return tmp_path

    return write


def test_points_of_a_teacher_s_own_are_written_without_needless_digits():
    rows = [Checked("put-the-barrier-back", 3.0, 3.0, ""), Checked("pad-the-tile", 0, 1.5, "Wrong.")]
    course = Course("hw2", (), {row.exercise: row.out_of for row in rows})
    assert [str(row).split(": ")[1] for row in rows] == ["3 of 3 points", "0 of 1.5 points\n    Wrong."]
    assert summary(course, rows) == "hw2: 3 of 4.5 points so far."


def test_each_exercise_has_its_points_or_a_reason(notebook):
    def change(cells):
        cells["exercise-put-the-barrier-back"].source = "def broken(:"
        cells["exercise-pad-the-tile"].source = cells["exercise-pad-the-tile"].source.replace("TILE + 1", "TILE")

    rows = [*check_course(COURSE, notebook(change))]
    assert [(row.exercise, row.points) for row in rows] == [
        ("put-the-barrier-back", 0),
        ("pad-the-tile", 0),
        ("write-the-tiled-matmul", 4),
    ]
    assert "SyntaxError" in rows[0].message
    assert "bank conflicts" in str(rows[1])
    assert str(rows[2]) == f"{exercise('write-the-tiled-matmul').headline}: 4 of 4 points"
    assert summary(COURSE, rows) == "hw2: 4 of 8 points so far."


def test_nothing_of_a_notebook_is_run(notebook, tmp_path):
    def change(cells):
        for name in ("tiled-gemm-code-001", "exercise-put-the-barrier-back", "exercise-pad-the-tile"):
            cells[name].source += f"\nopen({str(tmp_path / 'ran')!r}, 'w')"

    assert [row.points for row in check_course(COURSE, notebook(change))] == [2, 2, 4]
    assert not (tmp_path / "ran").exists()


def test_an_answer_stands_in_its_own_cell(notebook):
    def change(cells):
        cells["exercise-put-the-barrier-back"].source += "\n" + cells["exercise-write-the-tiled-matmul"].source
        cells["exercise-write-the-tiled-matmul"].source = ""

    assert [row.points for row in check_course(COURSE, notebook(change))][-1] == 0


@pytest.mark.parametrize(
    ("text", "said"), [("<<<<<<< HEAD", "conflict markers"), ("{}", "no list of cells"), ('{"cells": []}', "is gone")]
)
def test_a_broken_notebook_has_a_reason_for_each_exercise(notebook, text, said):
    rows = [*check_course(COURSE, notebook(text=text))]
    assert [row.points for row in rows] == [0, 0, 0]
    assert all(said in row.message for row in rows)


def test_a_notebook_that_is_gone_is_told_so(tmp_path):
    rows = [*check_course(COURSE, tmp_path)]
    assert [row.points for row in rows] == [0, 0, 0]
    assert all("no such file" in row.message.lower() for row in rows)
