"""Functions that a function defines: `def` and `lambda` inside a kernel, which numba compiles into each call.

An inner function becomes a function of its own, which takes the outer function's variables that it reads as further
arguments. The code of its defaults never runs: they must be plain constants.
"""

import ast
from types import CellType, CodeType, FunctionType, NoneType
from typing import Any

import numpy as np

from labkit.simulator.errors import KernelError
from labkit.simulator.reading.trusted import Device

EMPTY = object()  # what a cell of a variable holds
INNER = ast.FunctionDef | ast.Lambda


def inner_functions(function: FunctionType, tree: ast.FunctionDef, values: dict[str, Any]) -> dict:
    """Return (node, function) of each function that is defined right inside one, by its line and column.

    `values` has the free names of the outer function.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    nodes = [node for node in _right_inside(tree) if isinstance(node, INNER)]
    codes = {node: _code_of(function.__code__, node, nodes) for node in nodes}
    for node, code in codes.items():
        _check_order(tree, node, code.co_freevars)
    made = {node: _made(function, node, code, cells, values) for node, code in codes.items()}
    for name, node in named(tree).items():
        if name in cells:
            cells[name].cell_contents = Device(made[node])
    return {(node.lineno, node.col_offset): (node, inner) for node, inner in made.items()}


def named(tree: ast.FunctionDef) -> dict[str, ast.AST]:
    """Return the nodes of the inner functions that have a name of their own, by name."""
    stored = [n.id for n in _right_inside(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    stored += [n.name for n in _right_inside(tree) if isinstance(n, ast.FunctionDef)]
    found = {}
    for node in _right_inside(tree):
        match node:
            case ast.FunctionDef(name=name) if stored.count(name) == 1:
                found[name] = node
            case ast.Assign([ast.Name(name)], ast.Lambda() as value) if stored.count(name) == 1:
                found[name] = value
    return found


def free_variables(function: FunctionType, seen: tuple = ()) -> list[str]:
    """Return the outer function's variables that an inner one reads, or that inner functions which it calls read."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        content = _content(cell)
        if content is EMPTY:
            found.append(name)
        elif isinstance(content, Device) and content.py_func not in (*seen, function):
            found += free_variables(content.py_func, (*seen, function))
    return [*dict.fromkeys(found)]


def as_function(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    """Return the syntax of an inner function as that of a `def`."""
    if isinstance(node, ast.FunctionDef):
        return node
    body = ast.copy_location(ast.Return(node.body), node)
    function = ast.FunctionDef(name="a_lambda", args=node.args, body=[body], decorator_list=[], type_params=[])
    return ast.copy_location(function, node)


def _right_inside(tree):
    """Yield the nodes of a function, without what is inside its inner functions."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, INNER):
            yield from _right_inside(child)


def _code_of(outer: CodeType, node, nodes) -> CodeType:
    """Return the code of an inner function: of those with its name and line, the one at its place in their order."""

    def described(n):
        return getattr(n, "name", "<lambda>"), n.lineno

    if getattr(node, "decorator_list", None):
        raise KernelError("a function inside a kernel takes no decorator; leave it out", node.lineno)
    alike = sorted((n for n in nodes if described(n) == described(node)), key=lambda n: n.col_offset)
    codes = [c for c in outer.co_consts if isinstance(c, CodeType) and (c.co_name, c.co_firstlineno) == described(node)]
    if len(alike) != len(codes):
        raise KernelError("write each function inside a kernel on a line of its own", node.lineno)
    return codes[alike.index(node)]


def _check_order(tree, node, names):
    """Refuse an inner function above the first value of a variable that it reads, as numba does."""
    values = {argument.arg: 0 for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)}
    for n in _right_inside(tree):
        if isinstance(n, ast.FunctionDef) or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            name = n.name if isinstance(n, ast.FunctionDef) else n.id
            values[name] = min(n.lineno, values.get(name, n.lineno))
    for name in names:
        if values.get(name, 0) > node.lineno:
            what = f"`{node.name}`" if isinstance(node, ast.FunctionDef) else "this lambda"
            line = values[name]
            message = f"{what} reads `{name}`, whose first value is in line {line}; define {what} below that line"
            raise KernelError(message, node.lineno)


def _made(outer, node, code, cells, values):
    """Return an inner function, with the outer one's cells; the variables of the outer one have empty cells."""
    if node.args.kw_defaults:
        raise KernelError("a function inside a kernel takes plain positional arguments, without `*`", node.lineno)
    defaults = tuple(_default(default, values) for default in node.args.defaults)
    closure = tuple(cells.setdefault(name, CellType()) for name in code.co_freevars)
    return FunctionType(code, outer.__globals__, code.co_name, defaults or None, closure)


def _default(node, values):
    """Return the default of an argument: a plain number, or a name from outside for one."""
    value = node.value if isinstance(node, ast.Constant) else values.get(getattr(node, "id", None), EMPTY)
    if not isinstance(value, int | float | complex | np.number | np.bool_ | NoneType):
        raise KernelError("a default in a function inside a kernel is a plain number or None", node.lineno)
    return value


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY
