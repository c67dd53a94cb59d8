"""The one change that makes a wrong answer right: tried among the usual slips, and proven by the whole check."""

import ast
import inspect
import linecache
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterator

from labkit.checking.changes import LAST, POSSIBLE, Change, find_index_lines, find_unused, list_changes

OF_WAITS = "race", "in-flight", "barrier", "deadlock", "mbarrier", "order", "proxy"  # reasons
OF_INDICES = "bounds", "unwritten"
OFF_FOCUS = 3  # ranks
MOST_TRIES = 700
MOST_S = 8.0  # of computing


def find_repair(
    function: Callable, is_right: Callable[[Callable], bool], given: Collection[str], reason: str, line: int | None
) -> Change | None:
    """Return the first change with which a function is right, None if none is found in time.

    Parameters
    ----------
    is_right
        Judges a changed function. A wrong one should be told soon.
    given
        Names of constants that decide how the function is run: they stay as they are.
    reason, line
        Those of the verdict.
    """
    start_s = time.process_time()
    for number, change in enumerate(_list_changes(function, given, reason, line)[:MOST_TRIES]):
        if time.process_time() - start_s > MOST_S:
            return None
        if is_right(_make_changed(function, change, number)):
            return change
    return None


def find_unused_names(function: Callable) -> list[str]:
    """Return the parameters and variables of a function that nothing reads."""
    tree = _read(function)
    return find_unused(tree) if tree else []


def _read(function) -> ast.FunctionDef | None:
    """Return the function without decorators and annotations, with the lines of its cell; None if it cannot be read."""
    try:
        lines, first_line = inspect.getsourcelines(function.__code__)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list, tree.returns = [], None
    tree.args = ast.arguments([], [ast.arg(arg.arg) for arg in tree.args.args], None, [], [], None, [])
    ast.increment_lineno(tree, first_line - 1)
    return tree


def _list_changes(function, given, reason, line) -> list[Change]:
    tree = _read(function)
    if tree is None or function.__closure__:
        return []
    if any(isinstance(node, ast.While) for node in ast.walk(tree)):  # which a change may keep from its end
        return []
    numbers = {name: value for name, value in function.__globals__.items() if type(value) is int}
    read = [name for name in function.__code__.co_names if name in numbers]
    free = {name: numbers[name] for name in read if name not in given}
    changes = [*_change_constants(function, free, ast.unparse(tree)), *list_changes(tree, read, reason in OF_WAITS)]
    focus = find_index_lines(tree, line) if line and reason in OF_INDICES else set()
    return sorted(changes, key=lambda change: change.rank - OFF_FOCUS * (change.line in focus))


def _change_constants(function, numbers, text) -> Iterator[Change]:
    """Yield other values of the constants that the function reads from its cell."""
    lines = linecache.getlines(function.__code__.co_filename)
    for name, value in numbers.items():
        lines_set = [i for i, text in enumerate(lines, 1) if re.match(rf"[\w, ]*\b{name}\b[\w, ]*=", text)]
        near = [(value - 1, "one too large"), (value + 1, "one too small")]
        far = [(2 * value, "half of what it should be"), (value // 2, "twice what it should be")]
        for line in lines_set[:1]:
            for other, why in near + far:
                yield Change(
                    LAST if (other, why) in far else POSSIBLE,
                    line,
                    f"`{name}` is {why}: it should be {other} here.",
                    text,
                    {name: other},
                )


def _make_changed(function, change, number) -> Callable:
    """Make the changed function; `inspect.getsource` finds it."""
    filename = f"{function.__code__.co_filename}, change {number}"
    linecache.cache[filename] = (len(change.text), None, change.text.splitlines(keepends=True), filename)
    scope = {**function.__globals__, **change.constants}
    exec(compile(change.text, filename, "exec"), scope)  # defines the function, and runs nothing of it
    return scope[function.__name__]
