"""Grades real notebooks under pytest and nbval: chapters solved and blank, and those of a mixed class."""

import json

import nbformat
import pytest
from sampling import sampled

from labkit import places
from labkit.exercises import exercise, exercise_ids
from labkit.grading import grade, totals

pytestmark = pytest.mark.long
NOTEBOOKS = places.folder("notebooks")


def by_exercise(grades):
    return {row.exercise: row for row in grades}


def test_solved_chapters_get_full_marks_and_blank_ones_none():
    chapters = sampled(sorted({id[:2] for id in exercise_ids()}), 2)
    solved = [path for path in (NOTEBOOKS / "solutions").glob("*.ipynb") if path.name[:2] in chapters]
    blank = [path for path in NOTEBOOKS.glob("*.ipynb") if path.name[:2] in chapters]
    sums = totals(grade(solved + blank))
    for path in solved:
        most = sum(exercise(id).points for id in exercise_ids(path.name[:2]))
        assert sums[str(path)] == (most, most)
    for path in blank:
        assert sums[str(path)][0] == 0


@pytest.fixture
def submission(tmp_path):
    """Writes a copy of the solved chapter 03 with changes made to it."""

    def write(name, change):
        notebook = nbformat.read(NOTEBOOKS / "solutions" / "03-tiled-gemm.ipynb", as_version=4)
        change({cell.id: cell for cell in notebook.cells}, notebook)
        path = tmp_path / name
        path.write_text(json.dumps(notebook), encoding="utf-8")  # nbformat would mend what is broken
        return path

    return write


def answer(id, text):
    def change(cells, notebook):
        cells[f"exercise-{id.replace('.', '-')}"].source = text

    return change


def edit(id, old, new):
    def change(cells, notebook):
        cell = cells[f"exercise-{id.replace('.', '-')}"]
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return change


def test_a_mixed_class(submission, tmp_path):
    def of_all_kinds(cells, notebook):
        edit("03.1", "TILE = 8", "TILE = 4\nTILE += 4")(cells, notebook)
        notebook.cells.append(nbformat.from_dict(cells["exercise-03-2"]))
        edit("03.3", "def tuned_matmul(alpha, A, B, C):", "def tuned_matmul(alpha, A, B, C)")(cells, notebook)
        edit("03.4", "        cuda.syncthreads()\n    if", "    if")(cells, notebook)

    def forged(cells, notebook):
        notebook.cells.remove(cells["exercise-03-2"])
        edit("03.3", "TILE = 16", "TILE = 8")(cells, notebook)
        cells["exercise-03-4"].source = "tiled_matmul = None"
        cells["check-03-4"].source = "print('solved')"
        cells["check-03-4"].metadata.tags = ["nbval-skip"]

    def lose_the_ids(cells, notebook):
        for cell in notebook.cells:
            del cell["id"]

    submission("a-of-all-kinds.ipynb", of_all_kinds)
    submission("b-forged.ipynb", forged)
    (tmp_path / "c-broken.ipynb").write_text('{"cells": [{"cell_type"', encoding="utf-8")
    submission("d-without-ids.ipynb", lose_the_ids)
    grades = grade([tmp_path])
    points = {name.rsplit("/")[-1][0]: sums[0] for name, sums in totals(grades).items()}
    worth = {id: exercise(id).points for id in exercise_ids("03")}
    assert points == dict(a=worth["03.1"], b=worth["03.1"], c=0, d=0)
    said = {(row.submission.rsplit("/")[-1][0], row.exercise): row.message for row in grades}
    assert "2 cells" in said["a", "03.2"]
    assert "SyntaxError" in said["a", "03.3"]
    assert "Race on A_tile" in said["a", "03.4"]
    assert "no cell has this exercise" in said["b", "03.2"]
    assert "global loads" in said["b", "03.3"]
    assert "NoneType" in said["b", "03.4"]
    assert "not a notebook" in said["c", ""]
    assert all("no cell has this exercise" in said["d", id] for id in exercise_ids("03"))


def test_an_answer_that_never_ends_costs_its_own_points_only(submission):
    def change(cells, notebook):
        cells["exercise-03-2"].source = "while True:\n    pass"
        notebook.cells.reverse()

    path = submission("slow.ipynb", change)
    rows = by_exercise(grade([path], cell_timeout_s=5))
    assert "longer than 5 s" in rows["03.2"].message
    assert sum(row.points for row in rows.values()) == 8


def test_an_answer_that_ends_the_process_costs_its_own_points_only(submission):
    path = submission("dead.ipynb", answer("03.1", "import os\nos._exit(1)"))
    rows = by_exercise(grade([path], cell_timeout_s=10))
    assert rows["03.1"].points == 0
    assert sum(row.points for row in rows.values()) == 8


def test_an_answer_can_forge_neither_its_own_points_nor_see_those_of_others(submission, tmp_path):
    forgery = """
import os
import labkit.exercises.check as checking
def check(id, kernel):
    return checking._verdict(checking.Exercise, "solved", "Right")
checking.judge = check
def tiled_matmul(A, B, C):
    pass
raise Exception(sorted(os.listdir(".")))
"""
    paths = [
        submission("mallory.ipynb", answer("03.4", forgery)),
        submission("forger.ipynb", answer("03.4", forgery.partition("raise")[0])),
        submission("alice.ipynb", lambda cells, notebook: None),
    ]
    grades = grade(paths)
    assert [points for points, _ in totals(grades).values()] == [10, 6, 6]  # alice, forger, mallory
    (seen,) = [row.message for row in grades if "mallory" in row.submission and row.exercise == "03.4"]
    assert "['cells.jsonl', 'notebook.ipynb']" in seen


def test_the_same_seed_gives_the_same_grades_and_names_the_sizes(submission):
    path = submission("fixed.ipynb", edit("03.4", "range(0, K, TILE)", "range(0, min(K, 80), TILE)"))
    (row,) = [row for row in grade([path], seed=1) if row.exercise == "03.4"]
    assert "drawn with seed 1" in row.message
    assert row.seed == 1
    assert row in grade([path], seed=1)


def test_a_notebook_of_something_else_is_told_so(tmp_path):
    (tmp_path / "other.ipynb").write_text('{"cells": []}', encoding="utf-8")
    (row,) = grade([tmp_path])
    assert (row.points, row.out_of) == (0, 0)
    assert "no exercise of this book" in row.message
