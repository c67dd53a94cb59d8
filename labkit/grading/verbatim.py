"""Answers that stand verbatim in the book, as a copy would; of interest where there are many ways to the answer."""

import ast
from difflib import SequenceMatcher
from functools import cache

from labkit.book.chapter import exercise_cell_id
from labkit.checking.as_text import MOST_CHARACTERS, names_given
from labkit.exercises import chapter_of, exercise
from labkit.grading.rebuild import chapters, solved_chapters
from labkit.rebinding import names_in


def stands_in_the_book(id: str, text: str) -> bool:
    """Whether an answer is the book's solution but for comments and layout, where that is not the only way."""
    book = _of_the_book(id)
    return bool(book) and _statements(id, text) == book and not _one_way(id)


@cache
def _of_the_book(id):
    return _of(id, solved_chapters())


@cache
def _one_way(id):
    """Whether the solution is the exercise as it was given but for a line, or for numbers."""
    given, solution = _of(id, chapters()), _of_the_book(id)
    if _without_numbers(given) == _without_numbers(solution):
        return True
    lines = ["\n".join(one).splitlines() for one in (given, solution)]
    changes = SequenceMatcher(None, *lines, autojunk=False).get_opcodes()
    return sum(max(end - at, stop - start) for kind, at, end, start, stop in changes if kind != "equal") <= 1


def _of(id, notebooks):
    chapter = notebooks.get(chapter_of(id))
    sources = [cell.source for cell in chapter.cells if cell.id == exercise_cell_id(id)] if chapter else []
    return _statements(id, sources[0]) if sources else []


def _statements(id, text):
    """What the exercise's function is made of: itself, and what gives values to the names that it reads, in order."""
    if len(text) > MOST_CHARACTERS:
        return []
    try:
        statements = ast.parse(text).body
        givers: dict[str, list[ast.stmt]] = {}
        for statement in statements:
            for name in names_given(statement):
                givers.setdefault(name, []).append(statement)
        found, waiting = set(), [exercise(id).function, *exercise(id).constants]
        for name in waiting:  # which grows
            for statement in givers.pop(name, []):
                if statement not in found:
                    found.add(statement)
                    waiting += names_in(statement)
        return [ast.unparse(statement) for statement in statements if statement in found]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _without_numbers(statements):
    """The statements with 0 in place of every constant."""
    tree = ast.parse("\n".join(statements))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)
