"""Accesses that are made because of what an atomic found: behind a condition on that, or behind a wait for it.

A thread that asks whether it is the last one may know by the answer that the atomics of others are done. One that uses
what an atomic found in another way, as a place to write to, learns nothing of who is still to come.
"""

import ast

from labkit.simulator.reading.source import captured, own_place, read_source
from labkit.simulator.reading.syntax import is_atomic, jumps
from labkit.simulator.translator.control_flow import callees


def answers(function: ast.FunctionDef, names) -> set[ast.Subscript]:
    """The subscripts of a function that stand behind a condition on what an atomic found; `names` resolves calls."""
    told, found = _told(function, _questions(function, names, {})), set()
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While) and _tells(node.test, told):
            goes_on = isinstance(node, ast.While) or jumps([*node.body, *node.orelse])  # what follows depends on it too
            inside = ast.walk(function if goes_on else node)
            found |= {n for n in inside if isinstance(n, ast.Subscript) and own_place(n) > own_place(node)}
    return found


def _questions(tree, names, known):
    """The calls of atomics, and of device functions that hold some; `known` keeps which do."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return {n for n in calls if is_atomic(n) or any(_asks(callee, known) for callee in callees([n], names))}


def _asks(function, known):
    if function not in known:
        known[function] = False  # until it is known; a function that calls itself is refused
        known[function] = bool(_questions(read_source(function).tree, captured(function), known))
    return known[function]


def _told(function, questions):
    """The questions, and the names of variables and arrays that hold something made of what an atomic found."""
    told, before = {*questions}, None
    while told != before:
        before = set(told)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign) and _tells(node.value, told):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                told |= {_name(part) for target in targets for part in getattr(target, "elts", [target])}
    return told


def _name(target):
    while isinstance(target, ast.Subscript):
        target = target.value
    return getattr(target, "id", None)


def _tells(node, told):
    return any(n in told or getattr(n, "id", n) in told for n in ast.walk(node))
