"""Answers that stand verbatim in the book: told to the teacher, for whom they may be a copy or the only way."""

import ast
from functools import cache

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise
from labkit.grading.rebuild import solved_chapters

NOTE = "The answer stands verbatim in the book."


def stands_in_the_book(id: str, text: str) -> bool:
    """Whether an answer's function is the book's solution but for comments and layout."""
    function = _function(id, text)
    return function is not None and function == _of_the_book(id)


@cache
def _of_the_book(id):
    chapter = solved_chapters().get(id[:2])
    sources = [cell.source for cell in chapter.cells if cell.id == exercise_cell_id(id)] if chapter else []
    return _function(id, sources[0]) if sources else None


def _function(id, text):
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name = exercise(id).function
    found = [node for node in statements if isinstance(node, ast.FunctionDef) and node.name == name]
    return ast.unparse(found[-1]) if found else None
