"""The book's exercises: one file each, found by name, and the check that judges a learner's code."""

import os
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from secrets import randbits
from typing import Any

from labkit import device
from labkit.exercises.check import judge
from labkit.exercises.exercise import Exercise
from labkit.exercises.on_gpu import judge_on_gpu
from labkit.exercises.verdict import Verdict

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
        Shows what is wrong and where, or that the exercise is solved. Under nbgrader, an exercise that is not solved
        raises NotSolved.
    """
    rules = exercise(id)
    if seed is None:
        seed = randbits(32)
    verdict = judge(rules, kernel, seed)
    if verdict.passed and rules.machine == "gpu" and device.current().kind == "gpu":
        verdict = judge_on_gpu(rules, kernel, verdict, seed)
    if not verdict.passed and NBGRADER in os.environ:
        raise NotSolved(repr(verdict))
    return verdict
