"""An answer is what its own text defines: a function, and the helpers that it calls."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from labkit.places import PACKAGE
from labkit.simulator.run import translated

_LANGUAGE = tuple(str(PACKAGE / room) for room in ("simulator", "ptx"))


def is_own(value: Any, name: str) -> bool:
    """Whether a value is a function that a learner wrote as `name`."""
    return (
        inspect.isfunction(value) and value.__name__ == name and not value.__code__.co_filename.startswith(str(PACKAGE))
    )


def not_its_own(function: Callable, name: str) -> str:
    """What is wrong with a function that should be written as `name`, in a sentence; nothing where it is."""
    if is_own(function, name):
        return ""
    return f"This is the function `{function.__name__}`: write your own, `def {name}(...)`."


def borrowed(function: Callable, helpers: Iterable[Callable]) -> str:
    """Which of the helpers does not stand in the function's own cell, in a sentence; nothing where all do."""
    for helper in helpers:
        filename, called = helper.__code__.co_filename, helper.__name__
        if filename != function.__code__.co_filename and not filename.startswith(_LANGUAGE):
            return f"`{called}` comes from elsewhere, and an answer stands alone: define `{called}` in its own cell."
    return ""


def helpers_of_kernel(kernel: Any, *args: Any) -> list[Callable]:
    """The device functions that a kernel calls, and those that they call."""
    return [function for function, *_ in translated(kernel, *args).compiled]
