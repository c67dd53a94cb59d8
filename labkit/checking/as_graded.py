"""Whether an answer that is right in a notebook is right to grading too, which reads its text alone."""

import ast
import inspect
import linecache
import numbers
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

import numpy as np

from labkit.checking.as_text import Texts
from labkit.checking.exercise import Exercise
from labkit.checking.source import python_function
from labkit.checking.verdict import Verdict
from labkit.rebinding import names_used_by


def why_not(
    rules: Exercise,
    kernel: Any,
    setups: Iterable[str],
    earlier: Iterable[tuple[Exercise, Any]],
    judge: Callable[[Any], Verdict],
) -> str:
    """Why an answer that is right in the notebook earns nothing as a text, in a sentence; "" where it does.

    Parameters
    ----------
    setups, earlier
        The chapter's setup cells; the exercises before this one, each with the function that answers it.
    judge
        Gives the verdict on a function. It is asked only where the text leaves another than the one at hand.
    """
    texts, live = Texts(setups), python_function(kernel)
    for other, function in earlier:
        texts.read(other, _text_of(python_function(function)))
    wrong = texts.read(rules, _text_of(live))
    read = texts.namespace[rules.function]
    lost = next(_lost(live, python_function(read), set()), "") if read is not None else ""
    if wrong is not None:
        return f"{wrong.message} Here that is `{lost}`." if lost else wrong.message
    chosen = [(live.__globals__.get(name), texts.namespace.get(name)) for name in rules.constants]
    if _alike(live, read, set()) and all(_alike(*pair, set()) for pair in chosen):
        return ""
    verdict = judge(read)
    return "" if verdict.passed else verdict.message


def _text_of(function):
    """The cell, or the file, in which a function was written."""
    return "".join(linecache.getlines(function.__code__.co_filename))


def _alike(live, read, seen):
    """Whether what a notebook holds and what its text says is the same: functions by what they read, too."""
    live, read = python_function(live), python_function(read)
    if inspect.isfunction(live) and inspect.isfunction(read) and live is not read:
        if (live, read) in seen:
            return True
        seen.add((live, read))
        ours, theirs = names_used_by(live), names_used_by(read)
        same = ours.keys() == theirs.keys() and _statements(live) == _statements(read)
        return same and all(_alike(value, theirs[name], seen) for name, value in ours.items())
    if isinstance(live, tuple) and isinstance(read, tuple):
        return len(live) == len(read) and all(_alike(*pair, seen) for pair in zip(live, read, strict=True))
    if isinstance(live, numbers.Number | str):
        return type(live) is type(read) and (live == read or live != live)
    return live is read


def _statements(function):
    """The body of a function, without the decorators and annotations that grading leaves out."""
    lines, _ = inspect.getsourcelines(function.__code__)
    definition = ast.parse(dedent("".join(lines))).body[0]
    return [ast.dump(statement) for statement in getattr(definition, "body", [])]


def _lost(live, read, seen):
    """What the function reads and its text gives no value, as lines to write."""
    there = names_used_by(read)
    for name, value in names_used_by(live).items():
        other = there.get(name)
        if other is None and (written := _literal(value)):
            yield f"{name} = {written}"
        value, other = python_function(value), python_function(other)
        if inspect.isfunction(value) and inspect.isfunction(other) and value is not other and value not in seen:
            seen.add(value)
            yield from _lost(value, other, seen)


def _literal(value):
    """A number as one writes it into a cell; "" for all else."""
    if isinstance(value, np.number):
        return f"np.{value.dtype}({value})" if np.isfinite(value) else f'np.{value.dtype}(float("{value}"))'
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        items = [_literal(item) for item in value]
        return f"({', '.join(items)}{',' * (len(items) == 1)})" if all(items) else ""
    return repr(value) if isinstance(value, int | float) else ""
