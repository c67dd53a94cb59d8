"""The book's exercises: one file each, found by name, and the check that judges a learner's code."""

import os
from dataclasses import replace
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
from labkit.machine import device

__all__ = ["Exercise", "NotSolved", "Verdict", "check", "exercise", "exercise_ids"]

NBGRADER = "NBGRADER_EXECUTION"  # which nbgrader sets where a cell that does not raise earns its points


class NotSolved(Exception):
    """What a check raises under nbgrader, and nowhere else."""


@cache
def _modules() -> dict[str, str]:
    """Exercise id to module name: `e03_2_padding.py` holds exercise 03.2."""
    names = [name for _, name, _ in iter_modules(__path__) if name[0] == "e" and name[1:3].isdigit()]
    return {f"{name[1:3]}.{name.split('_')[1]}": name for name in sorted(names)}


def exercise_ids(chapter: str = "") -> tuple[str, ...]:
    """The ids of all exercises, or of one chapter's ("03")."""
    return tuple(id for id in _modules() if id.startswith(chapter))


def exercise(id: str) -> Exercise:
    """The exercise of that id; a ValueError names the ids there are."""
    if id not in _modules():
        raise ValueError(f"there is no exercise {id!r}: the ids are {', '.join(_modules())}.")
    return import_module(f"{__name__}.{_modules()[id]}").EXERCISE


def check(id: str, kernel: Any, seed: int | None = None) -> Verdict:
    """Judge a kernel (in chapter 01 a compiled loop, in chapter 11 a plain function) by the exercise's rules.

    Parameters
    ----------
    id
        Chapter and number of the exercise, such as "03.2".
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
    setups, names = setups_of(rules.id[:2]), python_function(kernel).__globals__
    before = [exercise(id) for id in exercise_ids(rules.id[:2]) if id < rules.id]
    earlier = [(other, names[other.function]) for other in before if other.function in names]
    earlier = [(other, found) for other, found in earlier if is_own(python_function(found), other.function)]
    return why_not(rules, kernel, setups, earlier, partial(judge, rules, seed=seed)) if setups else ""
