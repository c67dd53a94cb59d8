"""Accesses that are made because of what an atomic found: behind a condition on that, or behind a wait for it.

A thread that asks whether it is the last one may know by the answer that the atomics of others are done. One that uses
what an atomic found in another way, as a place to write to, learns nothing of who is still to come.
"""

import ast

from labkit.simulator.translator.control_flow import is_atomic, jumps
from labkit.simulator.translator.source import own_place


def answers(function: ast.FunctionDef) -> set[ast.Subscript]:
    """The subscripts of a function that stand behind a condition on what an atomic found."""
    told, found = _told(function), set()
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While) and _tells(node.test, told):
            goes_on = isinstance(node, ast.While) or jumps([*node.body, *node.orelse])  # what follows depends on it too
            inside = ast.walk(function if goes_on else node)
            found |= {n for n in inside if isinstance(n, ast.Subscript) and own_place(n) > own_place(node)}
    return found


def _told(function):
    """The names of variables and arrays that hold something made of what an atomic found."""
    names, before = set(), None
    while names != before:
        before = set(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign) and _tells(node.value, names):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {_name(part) for target in targets for part in getattr(target, "elts", [target])}
    return names


def _name(target):
    while isinstance(target, ast.Subscript):
        target = target.value
    return getattr(target, "id", None)


def _tells(node, names):
    return any(is_atomic(n) or (isinstance(n, ast.Name) and n.id in names) for n in ast.walk(node))
