"""Conversion between a learner's function and its text."""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any


def python_function(kernel: Any) -> Callable:
    """Return the plain function inside what `cuda.jit` or `njit` returned; a plain function as it is."""
    return getattr(kernel, "py_func", kernel)


def run_cell(text: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run the text of an exercise cell; `inspect.getsource` finds what it defines under `name`."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"__name__": "__main__", **namespace}
    exec(compile(text, name, "exec"), namespace)
    return namespace


def read_lines(code: CodeType) -> tuple[list[str], int]:
    """Return as `inspect.getsourcelines`, which asks every module first; raise OSError where there is no source."""
    linecache.checkcache(code.co_filename)
    lines, first_line = linecache.getlines(code.co_filename), code.co_firstlineno
    return (inspect.getblock(lines[first_line - 1 :]), first_line) if lines else inspect.getsourcelines(code)


def read_function(function: Callable) -> ast.FunctionDef | None:
    """Return the definition of a function, with the lines of its cell; None if its source cannot be read."""
    try:
        lines, first_line = read_lines(function.__code__)
        definition = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(definition, first_line - 1)
    return definition if isinstance(definition, ast.FunctionDef) else None


def find_stub_line(function: Callable) -> int | None:
    """Return the line of the first `...` that still waits for the learner's code, if there is one."""
    if function.__code__.co_filename == "<string>":  # Python 3.13 would give the text of `python -c`
        raise OSError("a string given to exec has no source to read")
    lines, first_line = read_lines(function.__code__)
    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        value = getattr(node, "value", None)  # of a line of its own, or of an assignment
        has_line = isinstance(node, ast.stmt | ast.expr | ast.keyword)
        if has_line and isinstance(value, ast.Constant) and value.value is ...:
            return first_line + node.lineno - 1
    return None
