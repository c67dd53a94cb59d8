"""A function's source: its text, its syntax tree, the values of its free names."""

import ast
import inspect
import linecache
import textwrap
from copy import deepcopy
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from labkit.simulator.errors import KernelError


@dataclass(frozen=True)
class Source:
    """A function's text, as its author sees it, and its parsed form with the lines of the file or cell."""

    text: str
    filename: str
    first_line: int
    tree: ast.FunctionDef


_sources: WeakKeyDictionary = WeakKeyDictionary()


def read_source(function: FunctionType, at: tuple[int, int] | None = None) -> Source:
    """The source of a Python function, as it was first read; raises KernelError where there is none to read.

    All of it is said to stand `at` a line and column, where these are given.
    """
    if function not in _sources:
        _sources[function] = _read(function)
    return _sources[function] if at is None else _moved(_sources[function], at)


def _moved(source, at):
    tree = deepcopy(source.tree)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno, node.col_offset = at
    return replace(source, tree=tree)


def _read(function):
    if function.__name__ == "<lambda>":
        raise KernelError("a kernel is a function written with `def`, not a lambda", function.__code__.co_firstlineno)
    try:
        linecache.checkcache(function.__code__.co_filename)
        if function.__code__.co_filename == "<string>":  # Python 3.13 would give the text of `python -c`
            raise OSError
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelError(
            f"the source of `{function.__name__}` cannot be read: write the kernel in a file or a notebook cell, "
            "not in a string given to exec",
            function.__code__.co_firstlineno,
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError("a kernel is a plain function written with `def`; leave `async` out", first)
    ast.increment_lineno(tree, first - 1)
    return Source(text, function.__code__.co_filename, first, tree)


def argument_names(source: Source) -> list[str]:
    """The names of a kernel's arguments; raises KernelError if they are not plain positional ones."""
    given = source.tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        raise KernelError(
            "a kernel takes plain positional arguments, without `*`, `**` or defaults; name each one",
            source.tree.lineno,
        )
    return [a.arg for a in (*given.posonlyargs, *given.args)]


def captured(function: FunctionType) -> dict[str, Any]:
    """The values that a function's free names have now: closure cells over globals."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def unwrap(thing):
    """The Python function behind what `cuda.jit` returned, or None."""
    function = getattr(thing, "py_func", None)
    return function if isinstance(function, FunctionType) else None
