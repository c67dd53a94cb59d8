"""Detection of similar answers, for the teacher to look at. Only what differs from book and blank is compared.

Names, comments and layout do not count, numbers do.
"""

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from labkit.exercises import index_in_book
from labkit.grading.verbatim import blank_statements, has_one_way, relevant_statements, solution_statements
from labkit.rebinding import names_in

GRAM = 5  # words in a row
LEAST_SHARE = 0.85  # of the grams of two answers that are in both
LEAST_OWN = 20  # grams that an answer needs beyond book and blank, for there is nothing to tell apart below
COMMON_SHARE, LEAST_COMMON = 0.1, 4  # of the students who answered: what so many write is common, not copied
_WORD = re.compile(r"\w+|[^\w\s]")
Grams = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class Group:
    """Students whose answers to an exercise are linked by pairs that share at least `share` of what is their own."""

    exercise: str
    students: tuple[str, ...]
    share: float
    is_common: bool


def find_similar(handed_in: Iterable[tuple[str, Mapping[str, str]]], exercises: Iterable[str]) -> list[Group]:
    """Return the groups of similar answers to the exercises, common ones last; given are a student and texts by id."""
    answers: dict[str, dict[str, set[Grams]]] = defaultdict(lambda: defaultdict(set))
    for student, texts in handed_in:
        for id, text in texts.items():
            answers[id][student].add(_own_grams(id, text))
    groups = [
        group for id in exercises if id in answers and not has_one_way(id) for group in _find_groups(id, answers[id])
    ]
    return sorted(groups, key=lambda group: (group.is_common, index_in_book(group.exercise), group.students))


def _find_groups(id: str, by_student: dict[str, set[Grams]]) -> Iterator[Group]:
    """Yield the groups of one exercise: students who are linked by similar answers."""
    students_of: dict[Grams, set[str]] = defaultdict(set)
    for student, texts in by_student.items():
        for grams in texts:
            if len(grams) >= LEAST_OWN:
                students_of[grams].add(student)
    pairs = list(_find_pairs(list(students_of)))
    group_of = {grams: {grams} for grams in students_of}
    for first, second, _ in pairs:
        group_of[first] |= group_of[second]
        group_of |= dict.fromkeys(group_of[first], group_of[first])
    most = max(LEAST_COMMON, COMMON_SHARE * len(by_student))
    for group in {frozenset(group) for group in group_of.values()}:
        students = sorted({student for grams in group for student in students_of[grams]})
        if len(students) > 1:
            share = min((share for first, _, share in pairs if first in group), default=1.0)
            yield Group(id, tuple(students), share, len(students) > most)


def _find_pairs(answers: Sequence[Grams]) -> Iterator[tuple[Grams, Grams, float]]:
    """Yield the pairs of similar answers with their share.

    Such a pair has a gram in common among the rarest of each: all but LEAST_SHARE of its grams, and one.
    """
    counts = Counter(gram for grams in answers for gram in grams)
    earlier: dict[tuple[str, ...], list[Grams]] = defaultdict(list)
    for grams in answers:
        rarest = sorted(grams, key=lambda gram: (counts[gram], gram))
        rarest = rarest[: len(grams) - math.ceil(LEAST_SHARE * len(grams)) + 1]
        for other in {other for gram in rarest for other in earlier[gram]}:
            share = len(grams & other) / len(grams | other)
            if share >= LEAST_SHARE:
                yield other, grams, share
        for gram in rarest:
            earlier[gram].append(grams)


def _own_grams(id: str, text: str) -> Grams:
    """Return what an answer does not have from the book or from the blank exercise."""
    return _make_grams(relevant_statements(id, text)) - _given_grams(id)


@cache
def _given_grams(id: str) -> Grams:
    return _make_grams(blank_statements(id)) | _make_grams(solution_statements(id))


def _make_grams(statements: Sequence[str]) -> Grams:
    """Return all runs of some words in statements, in which every name that they give is the same one."""
    try:
        tree = ast.parse("\n".join(statements))
        names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | names_in(tree, ast.Store)
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        text = ast.unparse(_drop_docstrings(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    words = ["name" if word in names else word for word in _WORD.findall(text)]
    return frozenset(tuple(words[first : first + GRAM]) for first in range(len(words) - GRAM + 1))


def _drop_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
