"""Runs answers as the programs that they are, in the sandbox alone; tells what became of them, and gives no points."""

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
    """File, exercise and what became of the answer, as they come: one sandbox for the answers of a file's chapter."""
    running = {executor.submit(run_answers, rebuild(chapters[t.key[1]], t.answers), list(t.answers)): t for t in tasks}
    for future in as_completed(running):
        task = running[future]
        said = {} if future.exception() else future.result()
        for id in task.answers:
            yield task.key[0], id, said.get(id, NOT_REACHED)


def run_answers(notebook: nbformat.NotebookNode, ids: list[str]) -> dict[str, str]:
    """What became of each exercise's cell; all that is read of the sandbox is text of limited length."""
    if why := explain_missing():
        return dict.fromkeys(ids, why)
    with TemporaryDirectory(prefix="labkit-run-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "notebook.ipynb"
        nbformat.write(notebook, path)
        command = [*nbval_command("/dev/stdout", CELL_TIMEOUT_S), "-s"]
        _, printed = run_inside(command, Path(folder), {"notebook.ipynb": path})
    cells = {exercise_cell_id(id): id for id in ids}
    said = {}
    for line in printed.splitlines():
        match _parse(line):
            case {"cell": str(cell), "passed": True} if cell in cells:
                said[cells[cell]] = RUNS
            case {"cell": str(cell), "hung": True} if cell in cells:
                said[cells[cell]] = f"It runs longer than {CELL_TIMEOUT_S} s."
            case {"cell": str(cell), "said": str(error)} if cell in cells:
                said[cells[cell]] = f"It fails: {error[:MAX_CHARACTERS]}"
    return said


def _parse(line):
    try:
        return json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
