"""Reads on which only a compare-and-swap depends, which itself checks whether the value still holds.

A loop around a compare-and-swap begins with such a guess (CUDA C++ Programming Guide, "Atomic Functions"). It does no
harm if it is out of date. Conditions of the loop on the guess are not checked.
"""

import ast

from labkit.simulator.reading.source import own_place
from labkit.simulator.reading.syntax import is_atomic, walk


def find_guesses(function: ast.FunctionDef) -> set[ast.Subscript]:
    """Return the subscripts of a function that read what a compare-and-swap of the same element compares with."""
    swaps = [node for node in walk(function) if _is_swap(node)]
    found = set()
    for node in walk(function) if swaps else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and _assigned_names(node.targets):
            for swap in swaps:
                if _element_text(swap) == _text_of(node.value.value, node.value.slice) and _is_guess(
                    node, swap, function
                ):
                    found.add(node.value)
    return found


def _is_guess(read, swap, function):
    """Return whether the value read is the swap's compare value, and goes nowhere else before it."""
    start, end = own_place(read), own_place(swap)
    if end < start:  # it is for the next iteration of a loop
        end = (float("inf"), 0)
    between = [s for s in walk(function) if isinstance(s, ast.stmt) and start < own_place(s) < end]
    copies = _closure(_assigned_names(read.targets), between, lambda value, known: getattr(value, "id", None) in known)
    derived = _closure(_assigned_names(read.targets), between, _mentions)
    compare = swap.args[-2]
    if not (isinstance(compare, ast.Name) and compare.id in copies):
        return False
    return not any(_passes_on(statement, derived, swap) for statement in between)


def _closure(names, statements, takes):
    """Return the names, and those to which the statements assign values that `takes` says come from them."""
    known, before = set(names), None
    while known != before:
        before = set(known)
        for statement in statements:
            if isinstance(statement, ast.Assign | ast.AugAssign) and takes(statement.value, known):
                known |= _assigned_names(getattr(statement, "targets", None) or [statement.target])
    return known


def _passes_on(statement, names, swap):
    """Return whether the statement passes these names' values on, other than to a variable, a condition or the swap."""
    if any(node is swap for node in walk(statement)) and not isinstance(statement, ast.Return):
        return False
    if isinstance(statement, ast.Assign | ast.AugAssign):
        targets = getattr(statement, "targets", None) or [statement.target]
        return not _assigned_names(targets) and any(_mentions(part, names) for part in (*targets, statement.value))
    return isinstance(statement, ast.Expr | ast.Return) and _mentions(statement, names)


def _is_swap(node):
    return is_atomic(node) and {"cas": 4, "compare_and_swap": 3}.get(node.func.attr) == len(node.args)


def _element_text(swap):
    return _text_of(swap.args[0], swap.args[1] if len(swap.args) == 4 else ast.Constant(0))


def _text_of(array, index):
    return ast.unparse(array), ast.unparse(index)


def _assigned_names(targets) -> set[str]:
    """Return the names that are assigned to, if they are all plain ones."""
    plain = all(isinstance(target, ast.Name) for target in targets)
    return {target.id for target in targets} if plain else set()


def _mentions(node, names):
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(node))
