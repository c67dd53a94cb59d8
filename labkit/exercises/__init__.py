"""The book's exercises, one file each, and the check of a learner's code."""

import os
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from pkgutil import iter_modules
from secrets import randbits
from typing import Any

from labkit import places
from labkit.checking.as_graded import find_grading_problem
from labkit.checking.check import judge
from labkit.checking.exercise import Exercise
from labkit.checking.on_gpu import judge_on_gpu
from labkit.checking.own_code import is_own
from labkit.checking.setup_cells import read_setup_cells
from labkit.checking.source import python_function
from labkit.checking.verdict import Verdict
from labkit.exercises.contents import book_contents, current_id, package_contents, retired_exercises
from labkit.exercises.own import OwnCourseError, own_folder, own_sources, require_own_names
from labkit.exercises.progress import note
from labkit.machine import device

__all__ = ["Exercise", "NotSolved", "OwnCourseError", "Verdict", "check", "exercise", "exercise_ids", "known_ids"]
__all__ += ["use_course"]

if folder := own_folder():
    __path__.append(str(folder / "exercises"))
NBGRADER = "NBGRADER_EXECUTION"  # set by nbgrader, for which a cell that does not raise earns its points


class NotSolved(Exception):
    """An exercise is not solved; raised only under nbgrader."""


def use_course(folder: Path) -> None:
    """Add an instructor's own chapters and exercises to the book, in this process and in those that it starts.

    Raises
    ------
    OwnCourseError
        The folder has none, or one of them has a name of the book's, or cannot be imported.
    """
    folder = folder.resolve()
    book, (package, *_) = package_contents(), __path__
    ids = {*retired_exercises(), *(id for chapter in book.chapters for id in chapter.exercises)}
    modules = {info.name for info in iter_modules([package])}
    require_own_names(folder, {chapter.slug for chapter in book.chapters}, ids, modules)
    os.environ[places.OWN_COURSE] = str(folder)
    __path__[:] = package, str(folder / "exercises")
    book_contents.cache_clear()
    exercise.cache_clear()
    for id in [id for path in own_sources() for id in exercise_ids(path.stem)]:
        try:
            exercise(id)
        except Exception as error:  # whatever a new file does
            file = f"exercises/{id.replace('-', '_')}.py"
            raise OwnCourseError(f"{file} of {folder} is no exercise: {type(error).__name__}: {error}") from error


def exercise_ids(chapter: str = "") -> tuple[str, ...]:
    """Return the ids of all exercises in the book's order, or of those of one chapter ("tiled-gemm")."""
    return tuple(id for entry in book_contents().chapters if chapter in ("", entry.slug) for id in entry.exercises)


def known_ids() -> tuple[str, ...]:
    """Return the ids of all exercises that are checked and graded: the book's, then those of earlier editions alone."""
    return (*exercise_ids(), *retired_exercises())


def chapter_of(id: str) -> str:
    """Return the slug of the chapter that has an exercise, or had it in an earlier edition; "" if none has."""
    chapter = book_contents().chapter_with(id)
    return chapter.slug if chapter else retired_exercises().get(id, "")


def index_in_book(id: str) -> int:
    """Return the index of an exercise in the book, a key to sort by; -1 if no edition has such an exercise."""
    ids = known_ids()
    return ids.index(id) if id in ids else -1


@cache
def exercise(id: str) -> Exercise:
    """Load the exercise with this id, or with the id that an earlier edition gave it.

    Raises
    ------
    ValueError
        There is no such exercise.
    """
    slug = current_id(id)
    name = slug.replace("-", "_")
    module = import_module(f"{__name__}.{name}") if name in {info.name for info in iter_modules(__path__)} else None
    if module is None or not hasattr(module, "EXERCISE") or "_" in slug:
        close = get_close_matches(id, exercise_ids(), 1) or ["pad-the-tile"]
        raise ValueError(f"there is no exercise {id!r}; exercises have names such as {close[0]!r}.")
    return replace(module.EXERCISE, id=slug, number=book_contents().number(slug))


def check(id: str, kernel: Any, seed: int | None = None) -> Verdict:
    """Judge an answer to an exercise: a kernel, or in some chapters a compiled loop or a plain function.

    Parameters
    ----------
    id
        The exercise, such as "pad-the-tile".
    kernel
        Your function, decorated with `cuda.jit` (or `njit`, or plain): its name, without brackets.
    seed
        Seed of the random sizes; each check draws others if None.

    Returns
    -------
    Verdict
        Shows that the exercise is solved, or what is wrong and where; or that it is solved here and will not be when
        the text of its cell is graded.

    Raises
    ------
    NotSolved
        The exercise is not solved, and nbgrader runs the check.
    """
    rules = exercise(id)
    if seed is None:
        seed = randbits(32)
    verdict = judge(rules, kernel, seed, repairs=True)
    if verdict.passed:
        verdict = replace(verdict, grading_problem=_find_grading_problem(rules, kernel, seed))
    if verdict.passed and rules.machine == "gpu" and device.current().kind == "gpu":
        verdict = judge_on_gpu(rules, kernel, verdict, seed)
    note(verdict)
    if not verdict.passed and NBGRADER in os.environ:
        raise NotSolved(repr(verdict))
    return verdict


def _find_grading_problem(rules: Exercise, kernel: Any, seed: int) -> str:
    """Find why a right answer earns nothing when its text is graded; "" if it earns its points."""
    chapter = chapter_of(rules.id)
    setups, names, ids = read_setup_cells(chapter), python_function(kernel).__globals__, exercise_ids(chapter)
    before = [exercise(id) for id in takewhile(lambda id: id != rules.id, ids)] if chapter else []
    earlier = [(other, names[other.function]) for other in before if other.function in names]
    earlier = [(other, answer) for other, answer in earlier if is_own(python_function(answer), other.function)]
    return find_grading_problem(rules, kernel, setups, earlier, partial(judge, rules, seed=seed)) if setups else ""
