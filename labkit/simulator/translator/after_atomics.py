"""Accesses that are made because of what an atomic found: behind a condition on that, or behind a wait for it.

A thread that asks whether it is the last one may know by the answer that the atomics of others are done. One that uses
what an atomic found in another way, as a place to write to, learns nothing of who is still to come.
"""

import ast

from labkit.simulator.reading.source import captured_values, own_place, read_source
from labkit.simulator.reading.syntax import is_atomic, may_jump
from labkit.simulator.translator.control_flow import callees


def accesses_after_atomics(function: ast.FunctionDef, names) -> set[ast.Subscript]:
    """The subscripts of a function that stand behind a condition on what an atomic found; `names` resolves calls."""
    derived, found = _derived_names(function, _atomic_calls(function, names, {})), set()
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While) and _mentions(node.test, derived):
            goes_on = isinstance(node, ast.While) or may_jump(
                [*node.body, *node.orelse]
            )  # what follows depends on it too
            inside = ast.walk(function if goes_on else node)
            found |= {n for n in inside if isinstance(n, ast.Subscript) and own_place(n) > own_place(node)}
    return found


def _atomic_calls(tree, names, known):
    """The calls of atomics, and of device functions that hold some; `known` keeps which do."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return {n for n in calls if is_atomic(n) or any(_holds_atomics(callee, known) for callee in callees([n], names))}


def _holds_atomics(function, known):
    if function not in known:
        known[function] = False  # until it is known; a function that calls itself is refused
        known[function] = bool(_atomic_calls(read_source(function).tree, captured_values(function), known))
    return known[function]


def _derived_names(function, questions):
    """The questions, and the names of variables and arrays that hold something made of what an atomic found."""
    derived, before = {*questions}, None
    while derived != before:
        before = set(derived)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign) and _mentions(node.value, derived):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                derived |= {_name(part) for target in targets for part in getattr(target, "elts", [target])}
    return derived


def _name(target):
    while isinstance(target, ast.Subscript):
        target = target.value
    return getattr(target, "id", None)


def _mentions(node, derived):
    return any(n in derived or getattr(n, "id", n) in derived for n in ast.walk(node))
