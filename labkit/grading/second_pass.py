"""The second pass of grading: answers run as programs, only in the sandbox, without points."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from labkit.book.chapter import exercise_cell_id
from labkit.grading.nbval_run import nbval_command
from labkit.grading.rebuild import rebuild
from labkit.grading.sandbox import explain_missing, run_inside
from labkit.grading.trusted import Task

CELL_TIMEOUT_S = 30
MAX_CHARACTERS = 300
RUNS = "It runs."
NOT_REACHED = "It was not reached: the program ended before, or broke a limit."


def run_as_programs(
    tasks: Iterable[Task], chapters: Mapping[str, nbformat.NotebookNode], executor: Executor
) -> Iterator[tuple[str, str, str]]:
    """Yield file, exercise and result of each answer, as they come: one sandbox per file and chapter."""
    running = {executor.submit(run_answers, rebuild(chapters[t.chapter], t.answers), list(t.answers)): t for t in tasks}
    for future in as_completed(running):
        task = running[future]
        results = {} if future.exception() else future.result()
        for id in task.answers:
            yield task.file, id, results.get(id, NOT_REACHED)


def run_answers(notebook: nbformat.NotebookNode, ids: list[str]) -> dict[str, str]:
    """Run each exercise's cell and return its result; only text of limited length is read from the sandbox."""
    if why := explain_missing():
        return dict.fromkeys(ids, why)
    with TemporaryDirectory(prefix="labkit-run-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "notebook.ipynb"
        nbformat.write(notebook, path)
        command = [*nbval_command("/dev/stdout", CELL_TIMEOUT_S), "-s"]
        _, printed = run_inside(command, Path(folder), {"notebook.ipynb": path})
    cells = {exercise_cell_id(id): id for id in ids}
    results = {}
    for line in printed.splitlines():
        match _parse(line):
            case {"cell": str(cell), "passed": True} if cell in cells:
                results[cells[cell]] = RUNS
            case {"cell": str(cell), "hung": True} if cell in cells:
                results[cells[cell]] = f"It runs longer than {CELL_TIMEOUT_S} s."
            case {"cell": str(cell), "output": str(error)} if cell in cells:
                results[cells[cell]] = f"It fails: {error[:MAX_CHARACTERS]}"
    return results


def _parse(line):
    try:
        return json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
