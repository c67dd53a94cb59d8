"""The text of exercise cells, from the chapters' sources, or from `retired/` if only earlier editions have them."""

from functools import cache
from pathlib import Path

import numba
import numpy as np

from labkit import cuda, places, ptx
from labkit.book.chapter import exercise_cell_id, read_chapter
from labkit.book.contents import source
from labkit.checking.definitions import read_definitions
from labkit.checking.source import run_cell
from labkit.exercises import chapter_of, exercise
from labkit.exercises.contents import retired_exercises


@cache
def _chapter(slug):
    return read_chapter(source(places.folder("notebooks"), slug))


def cell(id, notebook="solved"):
    """Return the exercise's cell in the solved (or blank) notebook."""
    if id in retired_exercises():
        return Path(__file__).with_name("retired").joinpath(f"{id}.txt").read_text(encoding="utf-8").rstrip("\n")
    cells = getattr(_chapter(chapter_of(id)), notebook).cells
    return next(cell.source for cell in cells if cell.id == exercise_cell_id(id))


def cells_of(path):
    """Return the code of a chapter's cells, solved."""
    return [cell.source for cell in read_chapter(path).solved.cells if cell.cell_type == "code"]


def function(id, text, name="<answer>"):
    """Run the text of an exercise cell after the chapter's imports; return its function."""
    return run_cell(text, name, {"np": np, "cuda": cuda, "njit": numba.njit, "ptx": ptx})[exercise(id).function]


def defined(id, text, name="<answer>"):
    """Read the text as the grader does, after the chapter's imports; return all that it defines."""
    return read_definitions(text, name, {"np": np, "cuda": cuda, "njit": numba.njit, "ptx": ptx})


def prose(chapter):
    """Return the prose of a chapter."""
    return "\n".join(cell.source for cell in _chapter(chapter).solved.cells if cell.cell_type == "markdown")
