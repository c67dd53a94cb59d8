"""What a kernel names beside its own variables: constants of its module, and functions that it calls."""

import ast
import inspect
import sys
from collections.abc import Callable
from textwrap import dedent


def constants(function: Callable) -> list[tuple[int, str]]:
    """The lines of a module that give a function its constants, and those that these come from, each with its number.

    Parameters
    ----------
    function
        A function of the package. For any other, such as a learner's own, there are none.
    """
    if not _of_package(function):
        return []
    source = inspect.getsource(sys.modules[function.__module__])
    needed, kept = _names(function), []
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.Assign) and needed & _stored(node):
            needed |= _loaded(node)
            kept.append(node)
    lines = source.splitlines()
    return [(n, lines[n - 1]) for node in reversed(kept) for n in range(node.lineno, node.end_lineno + 1)]


def helpers(function: Callable) -> list[Callable]:
    """The compiled functions of the package that a function calls, and those that these call.

    The instructions in `labkit.ptx` are none: they are no code of the book's, but the GPU's.
    """
    found: list[Callable] = []
    if _of_package(function):
        for name in sorted(_names(function)):
            called = getattr(sys.modules[function.__module__], name, None)
            if hasattr(called, "py_func") and _of_package(called.py_func) and called.py_func is not function:
                found += [called.py_func, *helpers(called.py_func)]
    return list(dict.fromkeys(found))


def _of_package(function):
    return function.__module__.partition(".")[0] == "labkit"


def _names(function):
    """Every name that a function's source reads, its decorator's too."""
    lines, _ = inspect.getsourcelines(function)
    return _loaded(ast.parse(dedent("".join(lines))))


def _loaded(node):
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)}


def _stored(node):
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
