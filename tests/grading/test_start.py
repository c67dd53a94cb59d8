"""A judge that does not start is said in one sentence, and no answer is blamed for it."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from handed_in import SAXPY, hand_in, setup_texts
from nbformat.v4 import new_code_cell, new_notebook
from typer.testing import CliRunner

from labkit import places
from labkit.book.chapter import METADATA
from labkit.cli import app
from labkit.grading import judging
from labkit.grading.judging import CannotJudge, Limits, judge_tasks
from labkit.grading.nbval_run import CellResult, run_notebook
from labkit.grading.trusted import START, Task

ANN = Task("ann", "first-gpu-matmul", {"write-saxpy": SAXPY})


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Makes a package fail for the processes that are started."""
    (tmp_path / "broken").mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'broken'}:{places.PACKAGE.parent}")

    def break_package(name):
        (tmp_path / "broken" / f"{name}.py").write_text(f"raise ImportError('{name} is broken')")

    return break_package


def judged():
    with ThreadPoolExecutor(1) as executor:
        return [
            judgement
            for *_, judgement in judge_tasks(
                [ANN], {"first-gpu-matmul": setup_texts("first-gpu-matmul")}, Limits(1), executor, 1
            )
        ]


def run_cells(*sources):
    cells = [new_code_cell(text, id=f"c{n}", execution_count=1) for n, text in enumerate(sources)]
    return run_notebook(new_notebook(cells=cells, metadata=METADATA), cell_timeout_s=30)


def test_grade_says_that_the_judge_does_not_start_and_blames_nobody(tmp_path, broken):
    broken("coverage")  # nbval imports it
    hand_in(tmp_path / "class" / "ann" / "02.ipynb", "first-gpu-matmul")
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "class"), "--out", str(tmp_path / "grades")])
    assert done.exit_code == 1
    assert "The judge does not start" in done.output and "coverage is broken" in done.output
    assert "not graded" not in done.output and "judge ended" not in done.output
    reports = tmp_path / "grades" / "grades.json"
    rows = json.loads(reports.read_text())["grades"] if reports.exists() else []
    assert {row["reason"] for row in rows} <= {"pending"}


@pytest.mark.parametrize(("package", "said"), [("ipykernel_launcher", "Kernel died"), ("numba", "numba is broken")])
def test_a_kernel_or_a_notebook_that_does_not_start_is_no_answer_s_fault(broken, monkeypatch, package, said):
    broken(package)
    monkeypatch.setattr(judging, "TRIES", 1)
    with pytest.raises(CannotJudge, match=said):
        judged()


def test_a_batch_that_does_not_start_is_to_blame_where_one_without_answers_does(monkeypatch):
    seen = []

    def run_batch(batch, *_):
        seen.append(batch)
        return {START: CellResult(not batch.tasks, False, bool(batch.tasks), "")}

    monkeypatch.setattr(judging, "run_batch", run_batch)
    assert judged() == [None]
    assert len([batch for batch in seen if batch.tasks]) == judging.TRIES


def test_a_kernel_that_dies_is_no_timeout():
    results = run_cells("x = 1", "import os\nos._exit(1)", "x = 2")
    assert list(results) == ["c0", "c1"]
    assert (results["c1"].hung, results["c1"].dead) == (False, True)


@pytest.mark.long
def test_a_warning_as_the_kernel_starts_changes_nothing(monkeypatch):
    real, seen = judging.trusted_notebook, []

    def with_a_warning(*arguments):
        notebook = real(*arguments)
        notebook.cells[0].source += "\nimport sys\nprint('deprecated', file=sys.stderr)"
        seen.append(notebook)
        return notebook

    monkeypatch.setattr(judging, "trusted_notebook", with_a_warning)
    assert [judgement.reason for judgement in judged()] == ["solved"]
    assert len(seen) == 1
