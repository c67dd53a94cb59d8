"""Answers that students share: named for the teacher, and never where two people write them alike anyhow."""

import random
import time

import pytest
from handed_in import SAXPY, solutions

from labkit.exercises import exercise_ids
from labkit.grading.grades import Grade
from labkit.grading.reports import write_reports
from labkit.grading.similar import find_similar

ID = "write-the-tiled-matmul"
OWN = """
TILE = 8

@cuda.jit
def tiled_matmul(A, B, C):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * cuda.blockDim.y + ty
    column = cuda.blockIdx.x * cuda.blockDim.x + tx
    result = float32(0)
    steps = (A.shape[1] + TILE - 1) // TILE
    for step in range(steps):
        left[ty, tx] = 0
        right[ty, tx] = 0
        if row < C.shape[0] and step * TILE + tx < A.shape[1]:
            left[ty, tx] = A[row, step * TILE + tx]
        if column < C.shape[1] and step * TILE + ty < A.shape[1]:
            right[ty, tx] = B[step * TILE + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            result += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    if row < C.shape[0]:
        if column < C.shape[1]:
            C[row, column] = result
"""
RENAMED = (
    OWN.replace("left", "a_part").replace("right", "b_part").replace("result", "acc").replace("step", "round_")
    .replace("def tiled_matmul(A, B, C):", "def tiled_matmul(A, B, C):\n    \"\"\"My own.\"\"\"  # honestly")
)  # fmt: skip
OTHER = """
TILE = 16

@cuda.jit
def tiled_matmul(X, Y, Z):
    tiles = cuda.shared.array((2, TILE, TILE), float32)
    j, i = cuda.grid(2)
    u, v = i % TILE, j % TILE
    rows, inner, columns = X.shape[0], X.shape[1], Y.shape[1]
    total = float32(0)
    start = 0
    while start < inner:
        tiles[0, u, v] = X[i, start + v] if i < rows and start + v < inner else float32(0)
        tiles[1, u, v] = Y[start + u, j] if j < columns and start + u < inner else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total = total + tiles[0, u, k] * tiles[1, k, v]
        cuda.syncthreads()
        start += TILE
    if i < rows and j < columns:
        Z[i, j] = total
"""


def found(**texts):
    return find_similar([(student, {ID: text}) for student, text in texts.items()], [ID])


def test_other_names_and_comments_hide_nothing():
    (group,) = found(ann=OWN, ben=OTHER, eve=RENAMED)
    assert (group.exercise, group.students, group.share, group.is_common) == (ID, ("ann", "eve"), 1.0, False)


def test_a_changed_line_hides_little():
    (group,) = found(ann=OWN, ben=OTHER, eve=RENAMED.replace("float32(0)", "float32(0.0)", 1))
    assert group.students == ("ann", "eve") and 0.85 <= group.share < 1


def test_two_ways_are_two_ways():
    assert found(ann=OWN, ben=OTHER) == []


@pytest.mark.parametrize("text", [solutions("tiled-gemm")[ID], "", "def tiled_matmul(:", "x = " + "[" * 5000, SAXPY])
def test_what_has_nothing_of_its_own_is_nobody_s(text):
    assert found(ann=text, eve=text) == []


def test_short_answers_are_written_alike_by_honest_people():
    texts = [("ann", {"write-saxpy": SAXPY}), ("ben", {"write-saxpy": SAXPY.replace("out.size", "x.size")})]
    assert find_similar([*texts, *[(f"{name}2", answers) for name, answers in texts]], ["write-saxpy"]) == []


def test_an_exercise_with_one_way_and_one_that_is_not_graded_are_left_out():
    assert find_similar([(name, solutions("tiled-gemm")) for name in "ab"], exercise_ids("tiled-gemm")) == []
    assert find_similar([(name, {ID: OWN}) for name in "ab"], ["write-saxpy"]) == []


def test_two_files_of_one_student_are_no_pair():
    assert find_similar([("ann", {ID: OWN}), ("ann", {ID: RENAMED})], [ID]) == []


def test_what_much_of_the_class_writes_is_common():
    class_of = {f"student{n}": OWN for n in range(5)} | {f"other{n}": OTHER for n in range(2)}
    first, second = found(**class_of)
    assert (first.students, first.is_common) == (("other0", "other1"), False)
    assert (len(second.students), second.is_common) == (5, True)


def test_a_large_class_takes_seconds():
    draw = random.Random(1)
    lines = OWN.splitlines()
    texts = {f"s{n}": "\n".join(lines[:5] + draw.sample(lines[5:], len(lines) - 5)) for n in range(100)}
    texts |= {
        f"t{n}": OTHER.replace("total", f"t{n}").replace("start += TILE", f"start += {n} + TILE * {n}")
        for n in range(200)
    }
    started_s = time.process_time()
    found(**texts)
    assert time.process_time() - started_s < 15


def test_only_the_teacher_reads_of_it(tmp_path):
    rows = [Grade(name, f"{name}.ipynb", ID, 0, 4, "Wrong.", 7, "result") for name in ("ann", "eve")]
    write_reports(rows, tmp_path, similar=found(ann=OWN, eve=OWN))
    assert (tmp_path / "similar.csv").read_text().splitlines()[1] == f"{ID},ann; eve,100%,"
    assert "Similar answers" in (tmp_path / "summary.md").read_text()
    for page in (tmp_path / "students").iterdir():
        assert "imilar" not in page.read_text()
