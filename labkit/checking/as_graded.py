"""Comparison of an answer in a notebook with the answer that grading reads from the text of its cell."""

import ast
import inspect
import linecache
import numbers
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

import numpy as np

from labkit.checking.as_text import AnswerReader
from labkit.checking.exercise import Exercise
from labkit.checking.source import python_function, read_lines
from labkit.checking.verdict import Verdict
from labkit.rebinding import names_used_by


def find_grading_problem(
    exercise: Exercise,
    kernel: Any,
    setups: Iterable[str],
    earlier: Iterable[tuple[Exercise, Any]],
    judge: Callable[[Any], Verdict],
) -> str:
    """Find why an answer that is right in the notebook earns nothing when its text is graded.

    Parameters
    ----------
    setups
        The text of the chapter's setup cells.
    earlier
        The exercises before this one, each with the function that answers it.
    judge
        Gives the verdict on a function. It is called only if the text defines another function than `kernel`.

    Returns
    -------
    str
        A sentence for the learner; "" if the answer earns its points.
    """
    reader, live = AnswerReader(setups), python_function(kernel)
    for other, function in earlier:
        reader.read(other, _read_source(python_function(function)))
    unreadable = reader.read(exercise, _read_source(live))  # the reason why grading cannot judge the text, or None
    read = reader.namespace[exercise.function]
    lost_value = next(_find_lost_values(live, python_function(read), set()), "") if read is not None else ""
    if unreadable is not None:
        return f"{unreadable.message} Here that is `{lost_value}`." if lost_value else unreadable.message
    constants = [(live.__globals__.get(name), reader.namespace.get(name)) for name in exercise.constants]
    if _is_same(live, read, set()) and all(_is_same(*pair, set()) for pair in constants):
        return ""
    verdict = judge(read)
    return "" if verdict.passed else verdict.message


def _read_source(function):
    """Return the text of the cell, or of the file, in which a function was written."""
    return "".join(linecache.getlines(function.__code__.co_filename))


def _is_same(live, read, visited):
    """Compare a value of the notebook with the value in its text; functions by their bodies and the names they read."""
    live, read = python_function(live), python_function(read)
    if inspect.isfunction(live) and inspect.isfunction(read) and live is not read:
        if (live, read) in visited:
            return True
        visited.add((live, read))
        live_names, read_names = names_used_by(live), names_used_by(read)
        same = live_names.keys() == read_names.keys() and _dump_body(live) == _dump_body(read)
        return same and all(_is_same(value, read_names[name], visited) for name, value in live_names.items())
    if isinstance(live, tuple) and isinstance(read, tuple):
        return len(live) == len(read) and all(_is_same(*pair, visited) for pair in zip(live, read, strict=True))
    if isinstance(live, numbers.Number | str):
        return type(live) is type(read) and (live == read or live != live)
    return live is read


def _dump_body(function):
    """Dump the statements of a function, without the decorators and annotations that grading leaves out."""
    lines, _ = read_lines(function.__code__)
    definition = ast.parse(dedent("".join(lines))).body[0]
    return [ast.dump(statement) for statement in getattr(definition, "body", [])]


def _find_lost_values(live, read, visited):
    """Yield assignments, as lines to write, of values that the function reads and its text does not define."""
    read_names = names_used_by(read)
    for name, value in names_used_by(live).items():
        other = read_names.get(name)
        if other is None and (literal := _format_literal(value)):
            yield f"{name} = {literal}"
        value, other = python_function(value), python_function(other)
        if inspect.isfunction(value) and inspect.isfunction(other) and value is not other and value not in visited:
            visited.add(value)
            yield from _find_lost_values(value, other, visited)


def _format_literal(value):
    """Write a number or a tuple of numbers as Python; "" for all else."""
    if isinstance(value, np.number):
        return f"np.{value.dtype}({value})" if np.isfinite(value) else f'np.{value.dtype}(float("{value}"))'
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        items = [_format_literal(item) for item in value]
        return f"({', '.join(items)}{',' * (len(items) == 1)})" if all(items) else ""
    return repr(value) if isinstance(value, int | float) else ""
