"""Puts a learner's answers into the trusted solution notebook."""

from collections.abc import Mapping
from pathlib import Path

import nbformat

from labkit import places
from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise_ids


def solved_chapters(notebooks: Path | None = None) -> dict[str, nbformat.NotebookNode]:
    """The solution notebook of each chapter that has exercises, by number ("03")."""
    solutions = (notebooks or places.folder("notebooks")) / "solutions"
    paths = sorted(solutions.glob("[0-9][0-9]-*.ipynb"))
    return {path.name[:2]: nbformat.read(path, as_version=4) for path in paths if exercise_ids(path.name[:2])}


def rebuild(solution: nbformat.NotebookNode, answers: Mapping[str, str]) -> nbformat.NotebookNode:
    """The part of the solution notebook that runs these answers: setup cells and answers."""
    answer_of = {exercise_cell_id(exercise): answer for exercise, answer in answers.items()}
    cells = []
    for cell in solution.cells:
        if cell.id in answer_of or _is_setup(cell):
            cells.append(nbformat.from_dict({**cell, "source": answer_of.get(cell.id, cell.source)}))
    return nbformat.v4.new_notebook(cells=cells, metadata=solution.metadata)


def setups(solution: nbformat.NotebookNode) -> list[str]:
    """The text of the chapter's setup cells."""
    return [cell.source for cell in solution.cells if _is_setup(cell)]


def _is_setup(cell):
    return "setup" in cell.metadata.get("tags", ())
