"""A class in batches: what hangs, dies or gets lost costs nobody else anything, and nobody a point without a reason."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from handed_in import SAXPY, setup_texts, solutions
from sampling import WHOLE

from labkit.grading import judging
from labkit.grading.judging import Batch, Limits, judge_tasks
from labkit.grading.nbval_run import CellResult
from labkit.grading.trusted import START, Task, answer_cells


def judged(tasks, chapters, workers=1, cell_timeout_s=60):
    texts = {chapter: setup_texts(chapter) for chapter in chapters}
    with ThreadPoolExecutor(workers) as executor:
        found = list(judge_tasks(tasks, texts, Limits(1, cell_timeout_s), executor, workers))
    reasons = {(task.file, id): judgement and judgement.reason for task, id, judgement in found}
    assert len(reasons) == len(found)  # none twice
    return reasons


def says(reason):
    if reason == "solved":
        return CellResult(True, False, False, "solved\n")
    return CellResult(False, False, False, "not solved\n", details=json.dumps({"reason": reason, "message": ""}) + "\n")


class Worker:
    """Stands in for nbval: answers say how they fare, and what becomes of the kernel."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch: Batch, setups, limits):
        self.batches.append([task.file for task in batch.tasks])
        results = {START: CellResult(True, False, False, "")}
        for cell, (task, id) in answer_cells(batch.current).items():
            fate = task.answers[id]
            if fate in ("hangs", "computes"):
                results[cell] = CellResult(False, True, False, "", cpu_s=limits.cell_timeout_s * (fate == "computes"))
                break
            if fate == "dies":
                results[cell] = CellResult(False, False, True, "")
                break
            if fate == "vanishes":
                break
            if fate == "ends the worker" or fate == "ends the worker once" and len(self.batches) == 1:
                raise OSError("the worker is gone")
            results[cell] = says("solved" if fate.startswith("ends") else fate)
        return results


@pytest.fixture
def worker(monkeypatch):
    worker = Worker()
    monkeypatch.setattr(judging, "run_batch", worker)
    return worker


@pytest.mark.parametrize(
    ("fate", "verdict"),
    [("hangs", "too slow"), ("computes", "too slow"), ("dies", None), ("vanishes", None), ("ends the worker", None)],
)
@pytest.mark.parametrize("place", ["write-saxpy", "rows-and-columns", "neighbours-together"])
def test_a_broken_answer_costs_itself_alone(worker, fate, verdict, place):
    answers = {"write-saxpy": "solved", "rows-and-columns": "race", "neighbours-together": "solved"}
    expected = {(name, id): reason for name in ("ann", "mal", "zoe") for id, reason in answers.items()}
    expected["mal", place] = verdict
    tasks = [
        Task(name, "first-gpu-matmul", answers | ({place: fate} if name == "mal" else {}))
        for name in ("ann", "mal", "zoe")
    ]
    assert judged(tasks, ["first-gpu-matmul"]) == expected


def test_an_answer_that_computes_for_too_long_is_not_tried_again(worker):
    """Tried alone too is only one whose kernel stood still: that may be the machine's fault."""
    for fate, kernels in (("computes", 1), ("hangs", 2)):
        worker.batches.clear()
        tasks = [Task(name, "first-gpu-matmul", {"write-saxpy": "solved"}) for name in ("ann", "ben")]
        tasks.append(Task("mal", "first-gpu-matmul", {"write-saxpy": fate}))
        assert judged(tasks, ["first-gpu-matmul"])["mal", "write-saxpy"] == "too slow"
        assert sum("mal" in batch for batch in worker.batches) == kernels, fate


def test_a_worker_that_dies_once_loses_nothing(worker):
    tasks = [
        Task(name, "first-gpu-matmul", {"write-saxpy": "ends the worker once", "rows-and-columns": "race"})
        for name in ("ann", "ben")
    ]
    reasons = judged(tasks, ["first-gpu-matmul"])
    assert set(reasons.values()) == {"solved", "race"} and len(reasons) == 4


def test_a_cell_that_fails_otherwise_than_by_its_verdict_is_no_zero(worker, monkeypatch):
    lines = iter(["NameError: judge", "not solved", "solved", ""] * 3)  # without a line of details, too
    started = CellResult(True, False, False, "")
    monkeypatch.setattr(
        judging,
        "run_batch",
        lambda *_: {START: started, "answer-0-write-saxpy": CellResult(False, False, False, next(lines))},
    )
    assert judged([Task("ann", "first-gpu-matmul", {"write-saxpy": "x"})], ["first-gpu-matmul"]) == {
        ("ann", "write-saxpy"): None
    }


def test_work_is_shared_among_the_workers(worker):
    tasks = [Task(f"{n:03}", "first-gpu-matmul", {"write-saxpy": "solved"}) for n in range(60)]
    judged(tasks, ["first-gpu-matmul"], workers=4)
    assert sorted(map(len, worker.batches)) == [15, 15, 15, 15]


def test_each_worker_has_answers_of_each_chapter(worker):
    chapters = ["first-gpu-matmul", "triple-loop"]
    tasks = [Task(f"{chapter}-{n}", chapter, {"write-saxpy": "solved"}) for n in range(4) for chapter in chapters]
    judged(tasks, chapters, workers=2)
    assert [sum(name.startswith("triple") for name in batch) for batch in worker.batches] == [2, 2]


@pytest.mark.long
@pytest.mark.skipif(not WHOLE, reason="takes a minute: the workers above stand in for it")
def test_an_answer_that_takes_for_ever_costs_itself_alone(monkeypatch):
    real = judging.trusted_notebook

    def with_an_endless_cell(tasks, setups, seed):
        """Stand in for a compiler that does not end, in which Python has no say."""
        notebook = real(tasks, setups, seed)
        for cell in notebook.cells:
            if "product" in cell.source:
                cell.source = "import re\nre.match('(a+)+$', 'a' * 60 + 'b')"
        return notebook

    monkeypatch.setattr(judging, "trusted_notebook", with_an_endless_cell)
    answers = solutions("first-gpu-matmul") | {"rows-and-columns": "x = 1"}
    mal = {"the-wrong-loop": "def product(A, B, C): pass"}
    tasks = [Task("mal", "triple-loop", mal), Task("ann", "first-gpu-matmul", answers)]
    reasons = judged(tasks, ["triple-loop", "first-gpu-matmul"], cell_timeout_s=10)
    expected = {("ann", id): "solved" for id in answers} | {
        ("ann", "rows-and-columns"): "not a kernel",
        ("mal", "the-wrong-loop"): "too slow",
    }
    assert reasons == expected


@pytest.mark.long
@pytest.mark.skipif(not WHOLE, reason="a class with a killed worker is graded elsewhere")
def test_a_kernel_killed_from_outside_is_replaced(monkeypatch, tmp_path):
    """The first kernel kills itself in the midst of a batch; all answers are judged all the same."""
    mark = tmp_path / "mark"
    kill = (
        f"import os, pathlib\nmark = pathlib.Path({str(mark)!r})\n"
        "if not mark.exists():\n    mark.touch()\n    os.kill(os.getpid(), 9)"
    )
    real = judging.trusted_notebook

    def with_a_killer(tasks, setups, seed):
        notebook = real(tasks, setups, seed)
        notebook.cells[-2].source += "\n" + kill
        return notebook

    monkeypatch.setattr(judging, "trusted_notebook", with_a_killer)
    tasks = [Task(name, "first-gpu-matmul", {"write-saxpy": SAXPY}) for name in ("ann", "ben")]
    assert judged(tasks, ["first-gpu-matmul"]) == {("ann", "write-saxpy"): "solved", ("ben", "write-saxpy"): "solved"}
    assert mark.exists()
