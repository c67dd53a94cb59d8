"""The trusted notebook under pytest and nbval: points are what nbval compares."""

import subprocess
import sys

import nbformat
import pytest
from handed_in import SAXPY, setup_texts

from labkit.grading.judge import NOT_SOLVED
from labkit.grading.trusted import Task, answer_cells, trusted_notebook

pytestmark = pytest.mark.long
WRONG = SAXPY.replace("+ y", "- y")
TASKS = [
    Task("ann", "first-gpu-matmul", {"write-saxpy": SAXPY}),
    Task("ben", "first-gpu-matmul", {"write-saxpy": WRONG}),
]
HOSTILE = [
    "# NBVAL_SKIP\n# NBVAL_IGNORE_OUTPUT\n# NBVAL_RAISES_EXCEPTION\n",
    "\u2028# NBVAL_SKIP\u2028\x0b# NBVAL_SKIP\x0c# NBVAL_SKIP\x1c# NBVAL_SKIP",
    "'''\n')\nprint('solved')\n'''",
    "%%javascript\n!touch forged\nsaxpy?",
]


def plain_nbval(folder, notebook):
    """Tell whether each cell passes under plain nbval, without our plugin."""
    nbformat.write(notebook, folder / "batch.ipynb")
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--nbval", "--nbval-current-env", "-rA", "-q"]
    done = subprocess.run([*command, "batch.ipynb"], cwd=folder, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))]
    passed = {int(line[2]): line[0] == "PASSED" for line in lines}
    return {cell.id: passed[number] for number, cell in enumerate(notebook.cells)}


def test_a_verdict_that_differs_from_the_trusted_one_fails_nbval(tmp_path):
    """Every cell fails whose answer is wrong, and one whose answer is right where the trusted verdict is another."""
    tasks = [
        *TASKS,
        *(Task(str(n), "first-gpu-matmul", {"write-saxpy": text + WRONG}) for n, text in enumerate(HOSTILE)),
    ]
    notebook = trusted_notebook([*tasks, TASKS[0]], {"first-gpu-matmul": setup_texts("first-gpu-matmul")}, seed=1)
    notebook.cells[-1].outputs[0].text = f"{NOT_SOLVED}\n"
    passed = plain_nbval(tmp_path, notebook)
    assert passed.pop("answer-0-write-saxpy")
    for number in range(1, len(tasks) + 1):
        assert not passed.pop(f"answer-{number}-write-saxpy")
    assert all(passed.values())  # the cells that only prepare
    assert not (tmp_path / "forged").exists()


def test_the_cells_of_answers_are_told_by_their_ids():
    task = Task(
        "ann",
        "first-gpu-matmul",
        {"write-saxpy": SAXPY, "rows-and-columns": "", "neighbours-together": ""},
        done=frozenset({"rows-and-columns"}),
    )
    assert answer_cells([TASKS[0], task]) == {
        "answer-0-write-saxpy": (TASKS[0], "write-saxpy"),
        "answer-1-write-saxpy": (task, "write-saxpy"),
        "answer-1-neighbours-together": (task, "neighbours-together"),
    }
    ids = [cell.id for cell in trusted_notebook([TASKS[0], task], {"first-gpu-matmul": []}, seed=1).cells]
    assert ids == [
        "start",
        "task-0",
        "answer-0-write-saxpy",
        "task-1",
        "answer-1-write-saxpy",
        "read-answer-1-rows-and-columns",
        "answer-1-neighbours-together",
    ]
