"""Breaks a right answer in every small way: one changed operator, number, name or statement at a time."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_OTHER_OPERATOR = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_OTHER_AXIS = {"x": "y", "y": "x"}


@dataclass(frozen=True)
class Mutation:
    """One change: its line and what became of what, and the whole text with it made."""

    what: str
    source: str


def mutations(source: str) -> Iterator[Mutation]:
    """Every mutation of the functions in the text of a cell."""
    tree = ast.parse(source)
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        twins, shaped = _twins(function), _shaped(function)
        for parent, field, place, node in list(slots(function)):
            for other in _alternatives(node, twins, shaped):
                put(parent, field, place, other)
                what = f"line {node.lineno}: {_text(node)} -> {_text(other)}"
                yield Mutation(what, ast.unparse(ast.fix_missing_locations(tree)) + "\n")
                put(parent, field, place, node)


def slots(function: ast.AST) -> Iterator[tuple[Any, str, int | None, Any]]:
    """Every expression and statement of the body, and where it hangs."""
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            if parent is function and field != "body":
                continue
            for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.expr | ast.stmt):
                    yield parent, field, place, node


def put(parent, field, place, node):
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def _twins(function):
    """Return names that people mix up: those bound together, such as row and col, and the lengths of arrays."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    groups = [_names(node.targets) for node in assigned if isinstance(node.targets[0], ast.Tuple)]
    groups.append([name for node in assigned if _is_length(node.value) for name in _names(node.targets)])
    twins = defaultdict(dict)  # as an ordered set
    for names in groups:
        for name in names:
            twins[name].update(dict.fromkeys(other for other in names if other != name))
    return twins


def _names(targets):
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _is_length(value):
    return any(isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in ast.walk(value))


def _shaped(function):
    """The parameters whose shapes the function asks for."""
    owners = [node.value for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == "shape"]
    asked = {owner.id for owner in owners if isinstance(owner, ast.Name)}
    return [argument.arg for argument in function.args.args if argument.arg in asked]


def _alternatives(node, twins, shaped):
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in _OTHER_OPERATOR:
            yield ast.Compare(left, [_OTHER_OPERATOR[type(operator)]()], right)
        case ast.BinOp(left, operator, right) if type(operator) in _OTHER_OPERATOR:
            yield ast.BinOp(left, _OTHER_OPERATOR[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(_OTHER_OPERATOR[type(operator)](), values)
            yield from values
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Name(name, ast.Load()) if name in twins:
            yield from (ast.Name(other, ast.Load()) for other in twins[name])
        case ast.Attribute(ast.Name(name), "shape", context):
            yield from (
                ast.Attribute(ast.Name(other, ast.Load()), "shape", context) for other in shaped if other != name
            )
        case ast.Attribute(value, name, context) if name in _OTHER_AXIS:
            yield ast.Attribute(value, _OTHER_AXIS[name], context)
        case ast.Subscript(value, ast.Tuple([first, second], _), context):
            yield ast.Subscript(value, ast.Tuple([second, first], ast.Load()), context)
        case ast.IfExp(_, body, otherwise):
            yield body
            yield otherwise
        case ast.If(test, body, otherwise):
            yield ast.If(ast.Constant(True), body, otherwise)
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)
            if otherwise:
                yield ast.If(test, body, [])
        case ast.AugAssign(target, _, value):
            yield ast.Assign([target], value)
            yield ast.Pass()
        case ast.Assign([ast.Tuple(elements, context)], value):
            yield ast.Assign([ast.Tuple(elements[::-1], context)], value)
            yield ast.Pass()
        case ast.Assign() | ast.Expr():
            yield ast.Pass()


def _text(node):
    return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
