"""Workers that judge batches: this machine's cores, or a Dask cluster."""

import os
import sys

import pytest
from handed_in import SAXPY, setup_texts

from labkit.grading.judging import Limits, judge_tasks
from labkit.grading.trusted import Task
from labkit.grading.workers import SchedulerError, start_workers


def test_cores_work_without_a_cluster():
    with start_workers(None) as (executor, workers):
        assert 1 <= workers <= os.cpu_count()
        assert executor.submit(len, "four").result() == 4
    with start_workers(None, 1) as (_, workers):
        assert workers == 1


def test_a_cluster_that_is_not_there_is_said_in_a_sentence(monkeypatch):
    pytest.importorskip("distributed")
    with pytest.raises(SchedulerError, match="no Dask scheduler at"), start_workers("tcp://127.0.0.1:9"):
        pass


def test_a_cluster_needs_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SchedulerError, match=r"install 'labkit-gpu\[cluster\]'"), start_workers("tcp://127.0.0.1:9"):
        pass


@pytest.mark.long
def test_a_cluster_judges_and_a_worker_that_dies_loses_nothing():
    distributed = pytest.importorskip("distributed")
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    tasks = [Task(f"ann-{n}", "first-gpu-matmul", {"write-saxpy": SAXPY if n % 2 else "x = 1"}) for n in range(6)]
    with (
        distributed.LocalCluster(**options) as cluster,
        start_workers(cluster.scheduler_address) as (executor, workers),
    ):
        assert workers == 2
        found = {}
        for task, _, judgement in judge_tasks(
            tasks, {"first-gpu-matmul": setup_texts("first-gpu-matmul")}, Limits(1), executor, workers
        ):
            if not found:
                next(iter(cluster.workers.values())).process.process.kill()
            found[task.file] = judgement and judgement.reason
    assert found == {f"ann-{n}": "solved" if n % 2 else "not a kernel" for n in range(6)}
