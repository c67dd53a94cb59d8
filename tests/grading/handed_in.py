"""Submissions for tests: copies of the book's solved chapters, with changes made to them."""

import json
from functools import cache
from pathlib import Path

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise_ids
from labkit.grading.rebuild import read_setups, read_solved_chapters

SAXPY = """
@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]
"""


@cache
def chapter(slug: str) -> str:
    """The solved notebook of a chapter, as JSON."""
    return json.dumps(read_solved_chapters()[slug])


def setup_texts(slug: str) -> list[str]:
    return read_setups(read_solved_chapters()[slug])


def solutions(slug: str) -> dict[str, str]:
    """The book's own answers to a chapter."""
    sources = {cell.id: cell.source for cell in read_solved_chapters()[slug].cells}
    return {id: sources[exercise_cell_id(id)] for id in exercise_ids(slug)}


def hand_in(path: Path, slug: str, change=None, **answers: str) -> Path:
    """Write the solved chapter, with these answers (`e3="..."` is the third) and what `change` does to it."""
    notebook = json.loads(chapter(slug))
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    for name, text in answers.items():
        cells[exercise_cell_id(exercise_ids(slug)[int(name[1:]) - 1])]["source"] = text
    if change:
        change(notebook, cells)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path
