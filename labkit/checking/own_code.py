"""The rule that an answer is a function from its own cell, with the helpers that the cell defines."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from labkit.places import PACKAGE
from labkit.simulator.run import translated

_LANGUAGE = tuple(str(PACKAGE / room) for room in ("simulator", "ptx"))


def is_own(value: Any, name: str) -> bool:
    """Tell whether a value is a function that a learner defined as `name`."""
    if not inspect.isfunction(value) or value.__name__ != name:
        return False
    return not value.__code__.co_filename.startswith(str(PACKAGE))


def explain_foreign_function(function: Callable, name: str) -> str:
    """Return a sentence if the learner did not define the function as `name`, else ""."""
    if is_own(function, name):
        return ""
    return f"This is the function `{function.__name__}`: write your own, `def {name}(...)`."


def find_foreign_helper(function: Callable, helpers: Iterable[Callable]) -> str:
    """Return a sentence on the first helper that is not defined in the function's cell, "" if all are."""
    for helper in helpers:
        filename, name = helper.__code__.co_filename, helper.__name__
        if filename != function.__code__.co_filename and not filename.startswith(_LANGUAGE):
            return f"`{name}` comes from elsewhere, and an answer stands alone: define `{name}` in its own cell."
    return ""


def collect_helpers(kernel: Any, *args: Any) -> list[Callable]:
    """Return the device functions that a kernel calls, directly or through others."""
    return [function for function, *_ in translated(kernel, *args).compiled]
