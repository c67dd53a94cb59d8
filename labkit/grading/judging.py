"""The judging of a class: batches of answers, each under nbval in a fresh kernel, resumed if one hangs or dies."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace

from labkit.grading.grades import make_printable
from labkit.grading.judge import NOT_SOLVED, SOLVED, Judgement, explain_timeout
from labkit.grading.nbval_run import CellResult, run_notebook
from labkit.grading.trusted import START, Task, answer_cells, trusted_notebook

CELL_TIMEOUT_S = 60
MAX_TASKS = 48  # per batch, which shares the seconds that a kernel takes to start
BUSY_SHARE = 0.5  # of the time limit: a kernel that computed for longer would hang alone too
TRIES = 3  # kernels that may die over one answer before it has no judgement


class CannotJudge(Exception):
    """The judge does not start on this machine; the message says what to do."""


@dataclass(frozen=True)
class Limits:
    """The seed and the time limit of one run, and the folder of the instructor's own exercises, if there is one."""

    seed: int
    cell_timeout_s: float = CELL_TIMEOUT_S
    own_course: str = ""


@dataclass(frozen=True)
class Batch:
    """Tasks for one kernel; the last `lost_kernels` kernels all ended on the first answer of a single task."""

    tasks: tuple[Task, ...]
    lost_kernels: int = 0

    @property
    def current(self) -> tuple[Task, ...]:
        """The tasks of its kernel: after a loss only the first answer, so that no other is blamed."""
        if not self.lost_kernels:
            return self.tasks
        (task,) = self.tasks
        return (replace(task, answers=_take_until(task.answers, task.pending[0])),)


def judge_tasks(
    tasks: Iterable[Task], setups: Mapping[str, Sequence[str]], limits: Limits, executor: Executor, workers: int
) -> Iterator[tuple[Task, str, Judgement | None]]:
    """Yield the task, exercise and judgement of every answer, as they come.

    An answer that hangs fails if its kernel computed meanwhile, or if it hangs in a kernel of its own too. One whose
    kernel dies three times has no judgement.

    Raises
    ------
    CannotJudge
        The judge does not start without any answer either.
    """
    waiting = deque(_make_batches(list(tasks), workers))
    running: dict[Future, Batch] = {}
    while waiting or running:
        while waiting:
            batch = waiting.popleft()
            running[executor.submit(run_batch, batch, setups, limits)] = batch
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            batch = running.pop(future)
            results = {} if future.exception() else future.result()
            if START not in results or not results[START].passed:
                _require_start(setups, limits, executor)
            yield from _read_results(batch, results, limits, waiting)


def run_batch(batch: Batch, setups: Mapping[str, Sequence[str]], limits: Limits) -> dict[str, CellResult]:
    """Return the results of a batch by cell; runs in a worker, which may be on another machine."""
    return run_notebook(trusted_notebook(batch.current, setups, limits.seed, limits.own_course), limits.cell_timeout_s)


def _require_start(setups, limits, executor):
    """Raise CannotJudge if a notebook without answers does not start."""
    for _ in range(TRIES):
        try:
            start = executor.submit(run_batch, Batch(()), setups, limits).result()[START]
        except Exception as error:  # of the executor, or of a worker that is another machine
            start = CellResult(passed=False, hung=False, dead=True, output=f"{type(error).__name__}: {error}")
        if start.passed:
            return
    output = f"It took longer than {limits.cell_timeout_s:g} s." if start.hung else start.output
    raise CannotJudge(
        "The judge does not start on this machine; the answers are not the reason. Install labkit and the packages "
        f"that it needs anew, then run this again; what is graded stays so. It said last:\n{make_printable(output)}"
    )


def _make_batches(tasks, workers):
    """Deal the tasks of each chapter out to all batches: chapters differ tenfold in work, batches then hardly."""
    tasks = sorted(tasks, key=lambda task: task.chapter)
    rounds = -(-len(tasks) // (MAX_TASKS * workers))
    batches = [tuple(tasks[first :: rounds * workers]) for first in range(rounds * workers)]
    return [Batch(batch) for batch in batches if batch]


def _read_results(batch, results, limits, waiting):
    """Yield the judgements in the results; queue the tasks that are left, alone the one whose kernel broke."""
    cells = answer_cells(batch.current)
    judgements = {cell: _read_judgement(results.get(cell)) for cell in cells}
    too_slow = [cell for cell in cells if _used_its_time(results.get(cell), limits)]
    judgements |= dict.fromkeys(too_slow, _make_timeout_judgement(limits))
    judged = {cell: judgement for cell, judgement in judgements.items() if judgement is not None}
    for cell, judgement in judged.items():
        yield *cells[cell], judgement
    done = {(cells[cell][0].key, cells[cell][1]) for cell in judged}
    tasks = [replace(task, done=task.done | {id for key, id in done if key == task.key}) for task in batch.tasks]
    remaining = [task for task in tasks if task.pending]
    broken = None if too_slow else next((cell for cell in cells if cell not in judged), None)
    if len(batch.tasks) > 1 and broken is not None:
        waiting.append(Batch(tuple(task for task in remaining if task.key == cells[broken][0].key)))
        remaining = [task for task in remaining if task.key != cells[broken][0].key]
    elif broken is not None and not judged:  # the first answer of a single task
        (task,), (_, id) = remaining, cells[broken]
        hung = broken in results and results[broken].hung
        if not hung and batch.lost_kernels + 1 < TRIES:
            waiting.append(Batch((task,), batch.lost_kernels + 1))
            return
        yield task, id, _make_timeout_judgement(limits) if hung else None
        remaining = [replace(task, answers={other: text for other, text in task.answers.items() if other != id})]
    remaining = [task for task in remaining if task.pending]
    if remaining:
        waiting.append(Batch(tuple(remaining)))


def _take_until(answers, last):
    ids = list(answers)
    return {id: answers[id] for id in ids[: ids.index(last) + 1]}


def _used_its_time(result, limits):
    """Tell whether a cell hung by its own work: not because the machine stood still."""
    return bool(result and result.hung and result.cpu_s > BUSY_SHARE * limits.cell_timeout_s)


def _make_timeout_judgement(limits):
    return Judgement("too slow", explain_timeout(f"{limits.cell_timeout_s:g} s"))


def _read_judgement(result: CellResult | None) -> Judgement | None:
    """Read a cell's judgement if nbval's comparison and the judge's words agree; points are only nbval's."""
    if result is None or result.hung or result.dead:
        return None
    if result.passed:
        return Judgement(SOLVED, "Solved.")
    try:
        return Judgement(**json.loads(result.details)) if result.output.strip() == NOT_SOLVED else None
    except ValueError:
        return None
