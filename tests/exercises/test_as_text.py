"""Messages of `check` if the live function is right and the text of its cell, which grading reads, is not."""

import numba
import numpy as np
import pytest
from exercise_cells import cell
from sampling import sampled

from labkit import check, cuda, exercises, places, ptx
from labkit.checking.as_text import AnswerReader
from labkit.checking.setup_cells import read_setup_cells
from labkit.checking.source import run_cell
from labkit.exercises import exercise, exercise_ids

IMPORTS = {"np": np, "cuda": cuda, "njit": numba.njit, "ptx": ptx}
SETUP = "import numpy as np\nfrom labkit import cuda\n"
LEAST = "LEAST = np.finfo(np.float32).min\n\n\n"
ZERO = "ZERO = np.float32(0.0)\n\n\n"
SAXPY = cell("write-saxpy").replace("+ y[i]", "+ y[i] + ZERO")


def checked(id, text, **elsewhere):
    """The verdict on a cell, run where the chapter's imports have been and other cells gave names these values."""
    return check(id, run_cell(text, f"<cell {id}>", {**IMPORTS, **elsewhere})[exercise(id).function], seed=1)


@pytest.fixture
def judged(monkeypatch):
    """The functions that are judged."""
    kernels, judge = [], exercises.judge

    def counted(rules, kernel, seed, **options):
        kernels.append(kernel)
        return judge(rules, kernel, seed, **options)

    monkeypatch.setattr(exercises, "judge", counted)
    return kernels


def test_a_constant_of_the_book_s_own_listings_is_known():
    assert "LEAST" not in cell("the-logarithm-of-the-sum")
    verdict = checked("the-logarithm-of-the-sum", LEAST + cell("the-logarithm-of-the-sum"))
    assert verdict.passed and not verdict.grading_problem


@pytest.mark.parametrize("before", [ZERO, "import math\n\nZERO = math.log(1)\n", "ZERO = 0.0\n"])
def test_what_the_text_says_as_well_is_judged_once(judged, before):
    verdict = checked("write-saxpy", before + SAXPY)
    assert "solved, 2 of 2 points" in repr(verdict)
    assert len(judged) == 1


@pytest.mark.parametrize("id", sampled(exercise_ids(), 4))
def test_the_book_s_solutions_are_judged_once(judged, id):
    verdict = checked(id, cell(id))
    assert verdict.passed and not verdict.grading_problem
    assert len(judged) == 1


def test_a_constant_of_another_cell_is_named_with_the_line_to_write():
    verdict = checked("write-saxpy", SAXPY, ZERO=np.float32(0.0))
    assert verdict.passed and verdict.points == 0
    shown = repr(verdict)
    assert f"✓ {exercise('write-saxpy').headline}: solved here, but not as it is graded" in shown
    assert "`ZERO` is not defined; if another cell defines it, move that into this one" in shown
    assert verdict.grading_problem.endswith("Here that is `ZERO = np.float32(0.0)`.")
    assert "<code>ZERO = np.float32(0.0)</code>" in verdict._repr_html_()


def test_a_name_that_only_the_cell_imports_is_said_to_be_imported():
    text = "from sys import maxsize\n\n\n" + cell("write-saxpy").replace("+ y[i]", "+ y[i] + 0 * maxsize")
    problem = checked("write-saxpy", text).grading_problem
    assert "`maxsize` is not defined: the cell imports it from where grading imports nothing" in problem


def test_a_constant_that_only_running_the_cell_tells_is_named_with_its_value():
    verdict = checked("write-saxpy", "ZERO = sum([])\n\n\n" + SAXPY)
    assert "Line 1, `ZERO = sum([])`: the value of `ZERO` is not known" in verdict.grading_problem
    assert verdict.grading_problem.endswith("Here that is `ZERO = 0`.")


@pytest.mark.parametrize(
    ("written", "tuple_"),
    [
        ("np.array([0.5, 2], np.float32)", "(np.float32(0.5), np.float32(2))"),
        ("np.array((0.5, 2), dtype=np.float32)", "(np.float32(0.5), np.float32(2))"),
        ("np.asarray([1, 2, 3])", "(1, 2, 3)"),
        ("[7]", "(7,)"),
    ],
)
def test_an_array_of_numbers_is_to_be_a_tuple(written, tuple_):
    text = cell("write-saxpy").replace("+ y[i]", "+ y[i] * ONE[0]")
    message = AnswerReader([SETUP]).read(exercise("write-saxpy"), f"ONE = {written}\n\n\n{text}").message
    assert message.startswith(f"Line 1, `ONE = {written}`: the value of `ONE` is not known")
    assert message.endswith(f"; write a tuple, `ONE = {tuple_}`.")
    assert AnswerReader([SETUP]).read(exercise("write-saxpy"), f"ONE = {tuple_}\n\n\n{text}") is None


def test_a_long_array_is_to_be_a_tuple_too():
    text = "ONE = np.array(" + repr([1] * 100) + ")\n\n\n" + cell("write-saxpy").replace("+ y[i]", "+ y[i] * ONE[0]")
    message = AnswerReader([SETUP]).read(exercise("write-saxpy"), text).message
    assert message.endswith("; write a tuple, `ONE = (1, ...)`.")


def test_a_function_that_its_text_does_not_define_is_told_so():
    text = "".join(f"    {line}\n" if line else "\n" for line in cell("write-saxpy").splitlines())
    verdict = checked("write-saxpy", f"if True:\n{text}")
    assert verdict.passed and "defines no function `saxpy`" in verdict.grading_problem


def test_a_constant_that_has_another_value_by_now_is_judged_as_the_text_has_it(judged):
    names = run_cell(ZERO + SAXPY, "<another cell>", IMPORTS)
    names["ZERO"] = 0
    assert not check("write-saxpy", names["saxpy"], seed=1).grading_problem
    names = run_cell("ZERO = 1\n" + SAXPY, "<another cell>", IMPORTS)
    names["ZERO"] = 0
    assert "out[0] is" in check("write-saxpy", names["saxpy"], seed=1).grading_problem
    assert len(judged) == 3 + 1


def test_what_an_earlier_answer_defines_counts():
    names = run_cell(ZERO + cell("write-saxpy"), "<first>", IMPORTS)
    add = cell("rows-and-columns").replace("C[row, col] = ", "C[row, col] = ZERO + ")
    assert "ZERO" in add
    assert not check("rows-and-columns", run_cell(add, "<second>", names)["add"], seed=1).grading_problem
    del names["saxpy"]
    assert (
        "`ZERO` is not defined"
        in check("rows-and-columns", run_cell(add, "<second>", names)["add"], seed=1).grading_problem
    )


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"cells": [1]}', '{"cells": [{"metadata": {}}, {}]}', None])
def test_a_check_goes_on_where_the_chapter_s_notebook_cannot_be_read(tmp_path, monkeypatch, content):
    if content is not None:
        (tmp_path / "02-first-gpu-matmul.ipynb").write_text(content)
    monkeypatch.setattr(places, "folder", lambda name: tmp_path)
    read_setup_cells.cache_clear()
    try:
        verdict = checked("write-saxpy", SAXPY, ZERO=0)
    finally:
        read_setup_cells.cache_clear()
    assert verdict.passed and not verdict.grading_problem
