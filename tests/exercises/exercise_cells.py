"""The text of exercise cells, from the chapters' sources."""

from functools import cache

import numba
import numpy as np

from labkit import cuda, places, ptx
from labkit.book.chapter import exercise_cell_id, read_chapter
from labkit.book.contents import source
from labkit.checking.definitions import read_definitions
from labkit.checking.source import run_cell
from labkit.exercises import chapter_of, exercise


@cache
def _chapter(slug):
    return read_chapter(source(places.folder("notebooks"), slug))


def cell(id, notebook="solved"):
    """The exercise's cell as the solutions (or the blanks) have it."""
    cells = getattr(_chapter(chapter_of(id)), notebook).cells
    return next(cell.source for cell in cells if cell.id == exercise_cell_id(id))


def cells_of(path):
    """The code of a chapter's cells, solved."""
    return [cell.source for cell in read_chapter(path).solved.cells if cell.cell_type == "code"]


def function(id, text, name="<answer>"):
    """What the text of an exercise cell defines, run where the chapter's imports have been."""
    return run_cell(text, name, {"np": np, "cuda": cuda, "njit": numba.njit, "ptx": ptx})[exercise(id).function]


def defined(id, text, name="<answer>"):
    """All that the text defines, read as the grader reads it, where the chapter's imports have been."""
    return read_definitions(text, name, {"np": np, "cuda": cuda, "njit": numba.njit, "ptx": ptx})


def prose(chapter):
    """The text of a chapter, without its code."""
    return "\n".join(cell.source for cell in _chapter(chapter).solved.cells if cell.cell_type == "markdown")
