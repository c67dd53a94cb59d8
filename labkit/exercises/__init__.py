"""The book's exercises: one file each, found by name, and the check that judges a learner's code."""

import os
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from secrets import randbits
from typing import Any

from labkit.checking.as_graded import why_not
from labkit.checking.check import judge
from labkit.checking.exercise import Exercise
from labkit.checking.given import setups_of
from labkit.checking.on_gpu import judge_on_gpu
from labkit.checking.own_text import is_own
from labkit.checking.source import python_function
from labkit.checking.verdict import Verdict
from labkit.exercises.contents import book_contents, current_id
from labkit.machine import device

__all__ = ["Exercise", "NotSolved", "Verdict", "check", "exercise", "exercise_ids"]

NBGRADER = "NBGRADER_EXECUTION"  # which nbgrader sets where a cell that does not raise earns its points


class NotSolved(Exception):
    """What a check raises under nbgrader, and nowhere else."""


def exercise_ids(chapter: str = "") -> tuple[str, ...]:
    """The ids of all exercises in the book's order, or of one chapter's ("tiled-gemm")."""
    return tuple(id for each in book_contents().chapters if chapter in ("", each.slug) for id in each.exercises)


def chapter_of(id: str) -> str:
    """The slug of the chapter that an exercise is in; "" if it is in none."""
    found = book_contents().chapter_with(id)
    return found.slug if found else ""


def place(id: str) -> int:
    """Where an exercise stands in the book: a key to sort by; what is no exercise comes first."""
    ids = exercise_ids()
    return ids.index(id) if id in ids else -1


@cache
def exercise(id: str) -> Exercise:
    """The exercise of that id, or of one that an edition before gave it."""
    slug = current_id(id)
    name = slug.replace("-", "_")
    module = import_module(f"{__name__}.{name}") if name in {found.name for found in iter_modules(__path__)} else None
    if module is None or not hasattr(module, "EXERCISE") or "_" in slug:
        close = get_close_matches(id, exercise_ids(), 1) or ["pad-the-tile"]
        raise ValueError(f"there is no exercise {id!r}; exercises have names such as {close[0]!r}.")
    return replace(module.EXERCISE, number=book_contents().number(slug))


def check(id: str, kernel: Any, seed: int | None = None) -> Verdict:
    """Judge a kernel (a compiled loop or a plain function in some chapters) by the exercise's rules.

    Parameters
    ----------
    id
        The exercise, such as "pad-the-tile".
    kernel
        Your function, decorated with `cuda.jit` (or `njit`, or plain): its name, without brackets.
    seed
        Draws the sizes of the last runs; each check draws others if None.

    Returns
    -------
    Verdict
        Shows what is wrong and where, or that the exercise is solved; or that it is solved here and would not be when
        it is graded, by its text. Under nbgrader, an exercise that is not solved
        raises NotSolved.
    """
    rules = exercise(id)
    if seed is None:
        seed = randbits(32)
    verdict = judge(rules, kernel, seed)
    if verdict.passed:
        verdict = replace(verdict, as_text=_why_not_as_text(rules, kernel, seed))
    if verdict.passed and rules.machine == "gpu" and device.current().kind == "gpu":
        verdict = judge_on_gpu(rules, kernel, verdict, seed)
    if not verdict.passed and NBGRADER in os.environ:
        raise NotSolved(repr(verdict))
    return verdict


def _why_not_as_text(rules: Exercise, kernel: Any, seed: int) -> str:
    """Why a right answer would earn nothing when its text is graded, in a sentence; "" where it would."""
    chapter = chapter_of(rules.id)
    setups, names, ids = setups_of(chapter), python_function(kernel).__globals__, exercise_ids(chapter)
    before = [exercise(id) for id in ids[: ids.index(rules.id)]] if chapter else []
    earlier = [(other, names[other.function]) for other in before if other.function in names]
    earlier = [(other, found) for other, found in earlier if is_own(python_function(found), other.function)]
    return why_not(rules, kernel, setups, earlier, partial(judge, rules, seed=seed)) if setups else ""
