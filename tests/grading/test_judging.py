"""A class in batches: what hangs, dies or gets lost costs nobody else anything, and nobody a point without a reason."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from handed_in import HANGS, SAXPY, setup_texts, solutions
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
    words = {"reason": reason, "message": "", "line": None, "launch": ""}
    return CellResult(
        reason == "solved", False, False, "solved\n" if reason == "solved" else "not solved\n" + json.dumps(words)
    )


class Worker:
    """Stands in for nbval: answers say how they fare, and what becomes of the kernel."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch: Batch, setups, limits):
        self.batches.append([task.file for task in batch.tasks])
        results = {START: CellResult(True, False, False, "")}
        for cell, (task, id) in answer_cells(batch.current).items():
            fate = task.answers[id]
            if fate == "hangs":
                results[cell] = CellResult(False, True, False, "")
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
    ("fate", "verdict"), [("hangs", "too slow"), ("dies", None), ("vanishes", None), ("ends the worker", None)]
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


def test_a_worker_that_dies_once_loses_nothing(worker):
    tasks = [
        Task(name, "first-gpu-matmul", {"write-saxpy": "ends the worker once", "rows-and-columns": "race"})
        for name in ("ann", "ben")
    ]
    reasons = judged(tasks, ["first-gpu-matmul"])
    assert set(reasons.values()) == {"solved", "race"} and len(reasons) == 4


def test_a_cell_that_fails_otherwise_than_by_its_verdict_is_no_zero(worker, monkeypatch):
    lines = iter(["NameError: judge", "not solved", "solved", ""] * 3)
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


@pytest.mark.long
@pytest.mark.skipif(not WHOLE, reason="takes a minute: the workers above stand in for it")
def test_an_answer_that_takes_for_ever_costs_itself_alone():
    answers = solutions("first-gpu-matmul") | {"rows-and-columns": "x = 1"}
    tasks = [Task("mal", "triple-loop", {"the-wrong-loop": HANGS}), Task("ann", "first-gpu-matmul", answers)]
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
