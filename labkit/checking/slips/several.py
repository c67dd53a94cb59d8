"""Changes in several places of a function at once, and what they are made of."""

import ast
from contextlib import contextmanager

from labkit.checking.mutants import put, slots
from labkit.checking.slips.change import LIKELY, Change, text_of


@contextmanager
def changed(places):
    """Put other nodes in places of the form (parent, field, place, node, other), and take them out again."""
    for parent, field, place, _, other in places:
        put(parent, field, place, other)
    yield
    for parent, field, place, node, _ in places:
        put(parent, field, place, node)


def change(function, rank, line, said, places) -> Change:
    with changed(places):
        return Change(rank, line, said, text_of(function))


def with_bodies(function, one, other, line, said):
    olds = [(owner, field, getattr(owner, field)) for owner, field, _ in (one, other)]
    for owner, field, body in (other, one):
        setattr(owner, field, body or [ast.Pass()])
    text = text_of(function)
    for owner, field, body in olds:
        setattr(owner, field, body)
    return Change(LIKELY, line, said, text)


def expression(text):
    return ast.parse(text, mode="eval").body


def stored_names(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def names_of(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def assignments(function):
    return [node for node in ast.walk(function) if isinstance(node, ast.Assign)]


def name_pairs(assignment):
    """Return the names that a line sets, each with its value."""
    target, value = assignment.targets[-1], assignment.value
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    pairs = zip(target.elts, value.elts, strict=False) if both else [(target, value)]
    return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]


def slots_within(owner, part):
    """Return the slots of a part of a statement or an expression, the part itself among them."""
    inside = {*ast.walk(part)}
    body = owner if isinstance(owner, ast.stmt) else ast.Expr(owner)
    return [slot for slot in slots(ast.Module([body], [])) if slot[3] in inside]
