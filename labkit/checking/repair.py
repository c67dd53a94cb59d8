"""The one change that makes a wrong answer right: tried among the usual slips, and proven by the whole check."""

import ast
import inspect
import linecache
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips import list_changes
from labkit.checking.slips.change import CHANCE, LIKELY, POSSIBLE, Change
from labkit.checking.slips.ends import find_ends, is_sure_to_end
from labkit.checking.slips.repeated import list_repeated_changes
from labkit.checking.slips.several import change as change_places
from labkit.checking.slips.structure import (
    find_early_return,
    find_index_lines,
    find_loops_of_index,
    find_unread,
    find_unused,
)
from labkit.checking.source import read_lines
from labkit.rebinding import names_in

OF_WAITS = "race", "in-flight", "barrier", "deadlock", "mbarrier", "order", "proxy"  # reasons
OF_LEAVING = "unwritten", "shuffle", "mask", "barrier"
OF_INDICES = "bounds", "unwritten"
OFF_FOCUS = {"race": 1, **dict.fromkeys(OF_INDICES, 4)}  # ranks, of a line that makes no index of the fault's
OF_LOOP = 3  # ranks, of a loop that counts an index that is outside
MOST_TRIES = 700
MOST_S = 6.0  # of computing


def find_repair(
    function: Callable,
    is_right: Callable[[Callable], bool],
    given: Collection[str],
    reason: str,
    line: int | None,
    below: int = CHANCE + 1,
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
    below
        The rank at which changes are too unlikely to be tried.
    """
    start_s = time.process_time()
    filename = function.__code__.co_filename
    cell = linecache.cache.get(filename)
    try:
        changes = [change for change in _list_changes(function, given, reason, line) if change.rank < below]
        for number, change in enumerate(changes[:MOST_TRIES]):
            if time.process_time() - start_s > MOST_S:
                return None
            changed = _make_changed(function, change, number)
            if changed and is_right(changed):
                return change
    finally:
        if cell:
            linecache.cache[filename] = cell  # without the helpers that were tried
    return None


def explain_early_return(function: Callable) -> str:
    """Return a sentence on threads that leave before others need them, "" if none do."""
    tree = _read(function)
    lines = find_early_return(tree) if tree else None
    if lines is None:
        return ""
    said = f"Line {lines[0]} lets threads leave, and all take part in line {lines[1]}: "
    return f"{said}keep them to the end, and guard only accesses that are outside an array."


def explain_unused(function: Callable) -> str:
    """Return a sentence on the first name that nothing reads, "" if there is none."""
    tree = _read(function)
    names = find_unused(tree) if tree else []
    if tree and names and names[0] in find_unread(tree):
        return f"`{names[0]}` is filled, and no line reads it: is it forgotten in the line that computes?"
    return f"`{names[0]}` is never used: is it forgotten somewhere?" if names else ""


def _read(function) -> ast.FunctionDef | None:
    """Return the function without decorators and annotations, with the lines of its cell; None if it cannot be read."""
    try:
        lines, first_line = read_lines(function.__code__)
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
    numbers = {name: value for name, value in function.__globals__.items() if type(value) is int}
    read = [name for name in function.__code__.co_names if name in numbers]
    free = {name: numbers[name] for name in read if name not in given}
    changes = [*_change_constants(function, free, ast.unparse(tree))]
    changes += [
        *_exchange_in_constants(function, free, ast.unparse(tree)),
        *list_changes(tree, read, reason in OF_WAITS),
    ]
    changes += [*list_repeated_changes(tree, read), *_change_helpers(function), *_call_unused(function, tree)]
    if ends := find_ends(tree):
        changes = [each for each in changes if each.helper or is_sure_to_end(ends, find_ends(ast.parse(each.text)))]
    focus = find_index_lines(tree, line) if line and reason in OFF_FOCUS else set()
    nearer = OFF_FOCUS.get(reason, 0)
    loops = find_loops_of_index(tree, line) if line and reason == "bounds" else set()
    first: dict[tuple, Change] = {}
    for change in sorted(changes, key=lambda each: each.rank - _nearness(each, focus, nearer, line, loops)):
        first.setdefault((change.text, *change.constants.items()), change)
    return list(first.values())


def _nearness(change, focus, nearer, line, loops):
    of_loop = OF_LOOP * (change.line in loops)
    return of_loop + nearer * (change.line in focus or bool(change.helper or change.constants)) + (change.line == line)


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
                    CHANCE if (other, why) in far else POSSIBLE,
                    line,
                    f"`{name}` is {why}: it should be {other} here.",
                    text,
                    {name: other},
                )


def _exchange_in_constants(function, numbers, text) -> Iterator[Change]:
    """Yield the values of constants of the cell with two names exchanged in the line that sets them."""
    source = "".join(linecache.getlines(function.__code__.co_filename))
    try:
        lines = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    except SyntaxError:
        return
    known = {name: value for name, value in function.__globals__.items() if type(value) is int}
    for line in lines:
        used = sorted({n.id for n in ast.walk(line.value) if isinstance(n, ast.Name) and n.id in known})
        for one, other in combinations(used, 2):
            scope = {**known, one: known[other], other: known[one]}
            try:
                exec(compile(ast.Module([line], []), "<constants>", "exec"), {"__builtins__": {}}, scope)
            except (NameError, TypeError, ZeroDivisionError, AttributeError):
                continue
            stored = names_in(line, ast.Store)
            changed = {name: scope[name] for name in numbers if name in stored and scope[name] != numbers[name]}
            if changed:
                said = f"`{one}` and `{other}` are exchanged in this line: "
                said += f"with them the right way round, {' and '.join(f'`{k}` is {v}' for k, v in changed.items())}."
                yield Change(LIKELY, line.lineno, said, text, changed)


def _call_unused(function, tree) -> Iterator[Change]:
    """Yield calls of a function that the cell imports by its name and that nothing calls yet."""
    text = "".join(linecache.getlines(function.__code__.co_filename))
    imported = re.findall(r"^from math import (.*)$", text, re.MULTILINE)
    names = [name.strip() for line in imported for name in line.split(",")]
    for name in [name for name in names if not re.search(rf"\b{name}\(", text)]:
        for slot in list(slots(tree)):
            node = slot[3]
            is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            is_value = isinstance(slot[0], ast.BinOp | ast.Assign | ast.IfExp)
            if isinstance(node, ast.Name | ast.BinOp) and is_read and is_value:
                new = ast.Call(ast.Name(name, ast.Load()), [node], [])
                said = f"`{name}` is imported and never called: write `{ast.unparse(new)}`."
                yield change_places(tree, LIKELY, node.lineno, said, [(*slot, new)])


def _make_changed(function, change, number) -> Callable | None:
    """Make the changed function, None if its text is no Python; `inspect.getsource` finds it."""
    if change.helper:
        return _make_with_helper(function, change)
    filename = f"{function.__code__.co_filename}, change {number}"
    linecache.cache[filename] = (len(change.text), None, change.text.splitlines(keepends=True), filename)
    scope = {**function.__globals__, **change.constants}
    try:
        exec(compile(change.text, filename, "exec"), scope)  # defines the function, and runs nothing of it
    except SyntaxError:
        return None
    return scope[function.__name__]


def _make_with_helper(function, change) -> Callable | None:
    """Make the function with a changed helper, which stands behind the other lines of its cell."""
    filename = function.__code__.co_filename
    entry: Any = linecache.cache[filename]
    size, when, lines, path = entry
    tree: Any = _read(function)
    text = f"{change.text}\n\n{ast.unparse(tree)}\n"
    longer: Any = size, when, [*lines, "\n", *text.splitlines(keepends=True)], path
    linecache.cache[filename] = longer
    scope = dict(function.__globals__)
    try:
        exec(compile("\n" * (len(lines) + 1) + text, filename, "exec"), scope)
    except SyntaxError:
        return None
    return scope[function.__name__]


def _change_helpers(function) -> Iterator[Change]:
    """Yield changes of the functions of the cell that a kernel calls."""
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    for name in names if function.__code__.co_filename in linecache.cache else ():
        helper = getattr(function.__globals__[name], "py_func", function.__globals__[name])
        if not inspect.isfunction(helper) or helper.__code__.co_filename != function.__code__.co_filename:
            continue
        if tree := _read(helper):
            for change in [*list_changes(tree, (), False), *list_repeated_changes(tree)]:
                yield replace(change, text=f"@cuda.jit(device=True)\n{change.text}", helper=name)
