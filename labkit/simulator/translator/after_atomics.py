"""Accesses that depend on an atomic's result: after a condition on it, or after a wait for it.

A thread that asks whether it is the last one may know from the result that the atomics of others are done. A thread
that uses the result in another way, as an index to write to, learns nothing of the atomics to come.
"""

import ast

from labkit.simulator.reading.source import captured_values, own_place, read_source
from labkit.simulator.reading.syntax import is_atomic, may_jump, walk
from labkit.simulator.translator.control_flow import callees


def accesses_after_atomics(function: ast.FunctionDef, names, cache: dict) -> set[ast.Subscript]:
    """Return the subscripts of a function that follow a condition on an atomic's result.

    `names` resolves calls; `cache` caches which device functions make atomics.
    """
    atomics = _atomic_calls(function, names, cache)
    if not atomics:
        return set()
    derived, found = _derived_names(function, atomics), set()
    for node in walk(function):
        if isinstance(node, ast.If | ast.While) and _mentions(node.test, derived):
            # behind a loop, or a branch that may jump, the rest of the function depends on the condition too
            to_the_end = isinstance(node, ast.While) or may_jump([*node.body, *node.orelse])
            inside = walk(function if to_the_end else node)
            found |= {n for n in inside if isinstance(n, ast.Subscript) and own_place(n) > own_place(node)}
    return found


def _atomic_calls(tree, names, cache):
    """Return the calls of atomics, and of device functions that make some."""
    calls = [n for n in walk(tree) if isinstance(n, ast.Call)]
    return {n for n in calls if is_atomic(n) or any(holds_atomics(callee, cache) for callee in callees([n], names))}


def holds_atomics(function, cache):
    """Return whether a device function calls an atomic."""
    if function not in cache:
        cache[function] = False  # until it is known; a function that calls itself is refused
        cache[function] = bool(_atomic_calls(read_source(function).tree, captured_values(function), cache))
    return cache[function]


def _derived_names(function, questions):
    """Return the calls, and the names of variables and arrays that hold values derived from an atomic's result."""
    derived, before = {*questions}, None
    while derived != before:
        before = set(derived)
        for node in walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign) and _mentions(node.value, derived):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                derived |= {_name(part) for target in targets for part in getattr(target, "elts", [target])}
    return derived


def _name(target):
    """Return the name of the variable or array that is assigned to."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return getattr(target, "id", None)


def _mentions(node, derived):
    return any(n in derived or getattr(n, "id", n) in derived for n in walk(node))
