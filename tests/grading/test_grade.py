"""Grades real notebooks under nbval: chapters solved and blank, and those of a mixed class."""

import nbformat
import pytest
from handed_in import hand_in, solutions
from sampling import sampled

from labkit import places
from labkit.exercises import chapter_of, exercise, exercise_ids
from labkit.exercises.contents import slug_of
from labkit.grading.grade import grade
from labkit.grading.grades import sum_points

pytestmark = pytest.mark.long
NOTEBOOKS = places.folder("notebooks")


def test_solved_chapters_get_full_marks_and_blank_ones_none(tmp_path):
    chapters = sampled(sorted({chapter_of(id) for id in exercise_ids()}), 1)
    solved = [path for path in (NOTEBOOKS / "solutions").glob("*.ipynb") if slug_of(path.stem) in chapters]
    blank = [path for path in NOTEBOOKS.glob("*.ipynb") if slug_of(path.stem) in chapters]
    grades = grade(solved + blank, tmp_path)
    for path in solved:
        own = [row for row in grades if row.submission == f"solutions/{path.name}"]
        assert {row.exercise: row.points for row in own} == {
            id: exercise(id).points for id in exercise_ids(slug_of(path.stem))
        }
    for path in blank:
        assert {row.points for row in grades if row.submission == f"notebooks/{path.name}"} == {0}


def test_a_mixed_class(tmp_path):
    solved = solutions("tiled-gemm")

    def edit(id, old, new):
        assert old in solved[id]
        return solved[id].replace(old, new)

    def twice(notebook, cells):
        notebook["cells"].append(cells["exercise-pad-the-tile"] | {"source": "padded_matmul = None"})

    def forged(notebook, cells):
        notebook["cells"].remove(cells["exercise-pad-the-tile"])
        cells["check-write-the-tiled-matmul"]["source"] = "print('solved')"
        cells["check-write-the-tiled-matmul"]["metadata"]["tags"] = ["nbval-skip"]
        cells["exercise-write-the-tiled-matmul"]["metadata"]["tags"] = ["nbval-skip"]

    hand_in(
        tmp_path / "a-of-all-kinds.ipynb",
        "tiled-gemm",
        twice,
        e1=edit("put-the-barrier-back", "TILE = 8", "TILE = 4\nTILE += 4"),
        e3=edit("choose-the-tile", "def tuned_matmul(alpha, A, B, C):", "def tuned_matmul(alpha, A, B, C)"),
        e4=edit("write-the-tiled-matmul", "        cuda.syncthreads()\n    if", "    if"),
    )
    hand_in(
        tmp_path / "b-forged.ipynb",
        "tiled-gemm",
        forged,
        e3=edit("choose-the-tile", "TILE = 16", "TILE = 8"),
        e4="tiled_matmul = None",
    )
    drawn = edit("write-the-tiled-matmul", "range(0, K, TILE)", "range(0, min(K, 80), TILE)")
    hand_in(tmp_path / "d-right-on-fixed-sizes.ipynb", "tiled-gemm", e1="", e2="", e3="", e4=drawn)
    (tmp_path / "c-broken.ipynb").write_text('{"cells": [{"cell_type"', encoding="utf-8")
    grades = grade([tmp_path], tmp_path / "out", seed=1)
    points = {name[0]: sums[0] for name, sums in sum_points(grades).items()}
    worth = {id: exercise(id).points for id in exercise_ids("tiled-gemm")}
    left, mended = worth["the-nearest-point"], worth["put-the-barrier-back"]  # all but the broken one leave one solved
    assert points == dict(a=mended + left, b=mended + left, c=0, d=left)
    said = {(row.student[0], row.exercise): row.message for row in grades}
    assert "2 cells" in said["a", "pad-the-tile"]
    assert "SyntaxError" in said["a", "choose-the-tile"]
    assert "Race on A_tile" in said["a", "write-the-tiled-matmul"]
    assert "no cell has this exercise" in said["b", "pad-the-tile"]
    assert "global loads" in said["b", "choose-the-tile"]
    assert "defines no function `tiled_matmul`" in said["b", "write-the-tiled-matmul"]
    assert "c-broken.ipynb: The file is not a notebook" in said["c", ""]
    (late,) = [row for row in grades if row.student[0] == "d" and row.exercise == "write-the-tiled-matmul"]
    assert (late.reason, late.seed, late.hidden) == ("result", 1, True)
    assert "drawn with seed 1" in late.launch
    pages = {path.name[0]: path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "students").iterdir()}
    assert {name: page.count("<img") for name, page in pages.items()} == dict(a=1, b=1, c=0, d=0)
    assert "line 16: block (0, 0) copies A[0:16, 0:16] into A_tile" in pages["a"]
    assert grade([tmp_path], tmp_path / "again", seed=1) == grades


def test_a_notebook_of_something_else_is_told_so(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "other.ipynb")
    (row,) = grade([tmp_path], tmp_path / "out")
    assert (row.points, row.out_of) == (0, 0)
    assert "no exercise that is graded" in row.message
