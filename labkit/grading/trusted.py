"""The trusted notebook of a batch: answers as text in our cells, with the verdict that earns their points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

from labkit.book.chapter import METADATA
from labkit.grading.judge import DETAILS, SOLVED

START = "start"  # the cell that prepares the kernel


@dataclass(frozen=True)
class Task:
    """The answers of one notebook to one chapter, by exercise and in order; those in `done` are judged already."""

    file: str  # its name in reports
    chapter: str
    answers: Mapping[str, str]
    done: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        """The file and the chapter."""
        return self.file, self.chapter

    @property
    def pending(self) -> list[str]:
        """The exercises whose answers are still to be judged."""
        return [id for id in self.answers if id not in self.done]


def trusted_notebook(
    tasks: Iterable[Task], setups: Mapping[str, Sequence[str]], seed: int, own_course: str = ""
) -> nbformat.NotebookNode:
    """Make a notebook whose cells pass under nbval if the answers in them are solved.

    Texts are ASCII literals on one line, in which neither IPython nor nbval finds syntax of its own. `own_course` is
    the folder of the instructor's own exercises, of which a worker of a cluster does not know.
    """
    tasks = list(tasks)
    chapters = sorted({task.chapter for task in tasks})
    texts = {chapter: list(setups[chapter]) for chapter in chapters}
    cells = [
        _make_silent_cell(
            "from labkit.grading.judge import Judge, compile_checks\n"
            "from labkit.grading.process import limit_memory, tie_to_parent\n\n"
            "tie_to_parent()\nlimit_memory()\ncompile_checks()\n"
            f"{_use_course(own_course)}"
            f"setups = {texts!a}",
            id=START,
        )
    ]
    for number, task in enumerate(tasks):
        judge = f"judge = Judge(setups[{task.chapter!r}], seed={seed}, details={DETAILS!r})"
        cells.append(_make_silent_cell(judge, id=f"task-{number}"))
        for id, text in task.answers.items():
            if id in task.done:
                cells.append(_make_silent_cell(f"_ = judge.read({id!r}, {text!a})", id=f"read-{_cell_id(number, id)}"))
            else:
                verdict = new_output("stream", name="stdout", text=f"{SOLVED}\n")
                source = f"judge({id!r}, {text!a})"
                cells.append(new_code_cell(source, id=_cell_id(number, id), execution_count=1, outputs=[verdict]))
    return new_notebook(cells=cells, metadata=METADATA)


def answer_cells(tasks: Iterable[Task]) -> dict[str, tuple[Task, str]]:
    """Return the task and exercise of each cell that judges an answer, by the cell's id, in order."""
    return {_cell_id(number, id): (task, id) for number, task in enumerate(tasks) for id in task.pending}


def _use_course(folder):
    if not folder:
        return ""
    return f"from pathlib import Path\n\nfrom labkit.exercises import use_course\n\nuse_course(Path({folder!a}))\n"


def _cell_id(number, id):
    return f"answer-{number}-{id}"


def _make_silent_cell(source, id):
    """Make a cell that only has to run: its output is not compared."""
    return new_code_cell(source, id=id, execution_count=1, metadata={"tags": ["nbval-ignore-output"]})
