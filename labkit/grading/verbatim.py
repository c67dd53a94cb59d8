"""Detection of answers copied from the book, for exercises that can be solved in many ways."""

import ast
from difflib import SequenceMatcher
from functools import cache

from labkit.book.chapter import exercise_cell_id
from labkit.checking.as_text import MAX_CHARACTERS, bound_names
from labkit.exercises import chapter_of, exercise
from labkit.grading.rebuild import read_chapters, read_solved_chapters
from labkit.rebinding import names_in


def is_book_solution(id: str, text: str) -> bool:
    """Tell whether an answer is the book's solution up to comments and layout, if there are other solutions."""
    solution = solution_statements(id)
    return bool(solution) and relevant_statements(id, text) == solution and not has_one_way(id)


@cache
def solution_statements(id: str) -> list[str]:
    """Return the statements of the book's solution; none where this copy of the book has no solutions."""
    return _exercise_statements(id, read_solved_chapters())


@cache
def blank_statements(id: str) -> list[str]:
    """Return the statements of the exercise as it is handed out."""
    return _exercise_statements(id, read_chapters())


@cache
def has_one_way(id: str) -> bool:
    """Tell whether the solution differs from the blank exercise only in a line, or only in numbers."""
    blank, solution = blank_statements(id), solution_statements(id)
    if _dump_without_numbers(blank) == _dump_without_numbers(solution):
        return True
    lines = ["\n".join(statements).splitlines() for statements in (blank, solution)]
    changes = SequenceMatcher(None, *lines, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in changes if kind != "equal") <= 1


def _exercise_statements(id, notebooks):
    chapter = notebooks.get(chapter_of(id))
    sources = [cell.source for cell in chapter.cells if cell.id == exercise_cell_id(id)] if chapter else []
    return relevant_statements(id, sources[0]) if sources else []


def relevant_statements(id: str, text: str) -> list[str]:
    """Return the exercise's function and the statements that define the names it reads, in order, as source."""
    if len(text) > MAX_CHARACTERS:
        return []
    try:
        statements = ast.parse(text).body
        definitions: dict[str, list[ast.stmt]] = {}
        for statement in statements:
            for name in bound_names(statement):
                definitions.setdefault(name, []).append(statement)
        found, names = set(), [exercise(id).function, *exercise(id).constants]
        for name in names:  # which grows
            for statement in definitions.pop(name, []):
                if statement not in found:
                    found.add(statement)
                    names += names_in(statement)
        return [ast.unparse(statement) for statement in statements if statement in found]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _dump_without_numbers(statements):
    """Dump the statements with 0 in place of every constant."""
    tree = ast.parse("\n".join(statements))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)
