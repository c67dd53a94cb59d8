"""The book's chapters, and chapters rebuilt with a learner's answers."""

from collections.abc import Mapping
from functools import cache

import nbformat

from labkit import places
from labkit.book.chapter import exercise_cell_id, read_chapter
from labkit.checking.setup_cells import is_setup_cell
from labkit.exercises import exercise_ids
from labkit.exercises.contents import NOTEBOOK_GLOB, slug_of
from labkit.exercises.own import own_sources


@cache
def read_chapters() -> dict[str, nbformat.NotebookNode]:
    """Read the blank notebook of each chapter that has exercises, by its slug; own chapters from their sources."""
    return _read(places.folder("notebooks")) | {path.stem: read_chapter(path).blank for path in own_sources()}


@cache
def read_solved_chapters() -> dict[str, nbformat.NotebookNode]:
    """Read the solved notebooks, as far as this copy of the book has them."""
    built = _read(places.folder("notebooks") / "solutions")
    return built | {path.stem: read_chapter(path).solved for path in own_sources()}


def rebuild(chapter: nbformat.NotebookNode, answers: Mapping[str, str]) -> nbformat.NotebookNode:
    """Make the part of a chapter that runs these answers: setup cells and answers.

    Answers to exercises that only an earlier edition has come last.
    """
    answer_of = {exercise_cell_id(exercise): answer for exercise, answer in answers.items()}
    cells = []
    for cell in chapter.cells:
        if cell.id in answer_of or is_setup_cell(cell):
            cells.append(nbformat.from_dict({**cell, "source": answer_of.pop(cell.id, cell.source)}))
    cells += [nbformat.v4.new_code_cell(answer, id=id) for id, answer in answer_of.items()]
    return nbformat.v4.new_notebook(cells=cells, metadata=chapter.metadata)


def read_setups(chapter: nbformat.NotebookNode) -> list[str]:
    """Return the text of the chapter's setup cells."""
    return [cell.source for cell in chapter.cells if is_setup_cell(cell)]


def _read(folder):
    paths = {slug_of(path.stem): path for path in sorted(folder.glob(NOTEBOOK_GLOB))}
    return {slug: nbformat.read(path, as_version=4) for slug, path in paths.items() if exercise_ids(slug)}
