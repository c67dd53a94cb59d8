"""Cures of usual mistakes that name a line, where an answer's own code shows for sure which it is."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Self

from labkit.checking.compare import Difference
from labkit.checking.source import read_function


class Place(NamedTuple):
    """A line, None if the code does not tell; and what to say in place of the cure, "" for the cure itself."""

    line: int | None = None
    said: str = ""


class PlacedCure(str):
    """A cure, with how to find its place in the definition of a learner's function."""

    find: Callable[[ast.FunctionDef], Place]

    def __new__(cls, text: str, find: Callable[[ast.FunctionDef], Place]) -> Self:
        """Make the cure."""
        cure = super().__new__(cls, text)
        cure.find = find
        return cure


def place_cure(cure: str, function: Callable[..., Any]) -> tuple[str, int | None]:
    """Return a cure, behind its line if the function shows that, and the line."""
    tree = read_function(function) if isinstance(cure, PlacedCure) else None
    if tree is None or not isinstance(cure, PlacedCure):
        return cure, None
    line, said = cure.find(tree)
    said = said or str(cure)
    if line is None:
        return said, None
    return f"Line {line}: {said[0].lower()}{said[1:]}", line


def place_clues(wrong: Difference, function: Callable[..., Any]) -> Difference:
    """Return a difference whose cure names its line."""
    placed = [place_cure(clue, function) for clue in wrong.clues]
    line = next((line for _, line in placed if line), None)
    return replace(wrong, clues=tuple(text for text, _ in placed), cure_line=line)


def quotients_by(name: str) -> Callable[[ast.FunctionDef], Place]:
    """Find the one line that divides by a name, rounding down."""

    def find(tree):
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)]
        return _only_line(n for n in nodes if isinstance(n.right, ast.Name) and n.right.id == name)

    return find


def products_with(number: int) -> Callable[[ast.FunctionDef], Place]:
    """Find the one line that begins a product with a number."""

    def find(tree):
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
        return _only_line(n for n in nodes if isinstance(n.left, ast.Constant) and n.left.value == number)

    return find


def operations(kind: type[ast.operator]) -> Callable[[ast.FunctionDef], Place]:
    """Find the one line with an operation, such as `ast.Div`."""

    def find(tree):
        return _only_line(n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, kind))

    return find


def calls_of(*names: str) -> Callable[[ast.FunctionDef], Place]:
    """Find the one line that calls one of some functions, by the last part of its name."""

    def find(tree):
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        return _only_line(call for call in calls if ast.unparse(call.func).split(".")[-1] in names)

    return find


def ranges_to(text: str) -> Callable[[ast.FunctionDef], Place]:
    """Find the one `range` with a step that ends at what is written as `text`, or at a name for it."""

    def find(tree):
        lines = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and ast.unparse(n.value).endswith(text)]
        names = {text, *(n.id for line in lines for n in ast.walk(line.targets[0]) if isinstance(n, ast.Name))}
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "range"]
        return _only_line(call for call in calls if len(call.args) == 3 and ast.unparse(call.args[1]) in names)

    return find


def first_store_of(name: str, stores: int) -> Callable[[ast.FunctionDef], Place]:
    """Find the first of a number of lines that store an element whose value a name is a part of."""

    def find(tree):
        lines = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript)]
        lines = sorted(n.lineno for n in lines if name in {m.id for m in ast.walk(n.value) if isinstance(m, ast.Name)})
        return Place(lines[0]) if len(lines) == stores else Place()

    return find


def number_lines(*numbers: int) -> Callable[[ast.FunctionDef], Place]:
    """Find the first of the lines that hold each of some numbers."""

    def find(tree):
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in numbers]
        has_all = {n.value for n in found} == set(numbers)
        return Place(min(n.lineno for n in found)) if has_all else Place()

    return find


def truth_of(name: str) -> Callable[[ast.FunctionDef], Place]:
    """Find the one line that takes a name for true or false as it is."""

    def find(tree):
        found = []
        for node in ast.walk(tree):
            tests = node.values if isinstance(node, ast.BoolOp) else [getattr(node, "test", None)]
            tests = [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else tests
            found += [test for test in tests if isinstance(test, ast.Name) and test.id == name]
        return _only_line(found)

    return find


def _only_line(nodes: Iterable[Any]) -> Place:
    lines = {node.lineno for node in nodes}
    return Place(lines.pop()) if len(lines) == 1 else Place()


def _parts(target):
    return target.elts if isinstance(target, ast.Tuple) else []


def find_swap(tree: ast.FunctionDef) -> Place:
    """Find where row and column have changed places: where the grid gives them, or in what bounds them."""
    assigned: list[Any] = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    grids = [node for node in assigned if ast.unparse(node.value) == "cuda.grid(2)"]
    pairs = [(node.lineno, *map(ast.unparse, _parts(node.targets[0]))) for node in grids]
    pairs = [pair for pair in pairs if len(pair) == 3]
    if len(pairs) != 1:
        return Place()
    ((line, x, y),) = pairs
    stored = [n.slice for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    orders = {ast.unparse(index).strip("()") for index in stored} & {f"{x}, {y}", f"{y}, {x}"}
    if orders == {f"{x}, {y}"}:
        return Place(line, "x comes first and counts along a row: give it to the column, and y to the row.")
    return _find_swapped_bound(tree, x, y) if orders == {f"{y}, {x}"} else Place()


def _find_swapped_bound(tree, col, row) -> Place:
    """Find the one line that compares row and column with each other's lengths."""
    lengths = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Tuple([ast.Name(rows), ast.Name(cols)])], ast.Attribute(ast.Name(array), "shape")):
                lengths |= {rows: (array, 0), cols: (array, 1)}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = [node.left, node.comparators[0]]
            for side, other in (sides, sides[::-1]):
                array, axis = _length(other, lengths)
                if isinstance(side, ast.Name) and axis == {row: 1, col: 0}.get(side.id):
                    found[node.lineno] = array
    if len(found) != 1:
        return Place()
    ((line, array),) = found.items()
    said = f"`{row}` goes with `{array}.shape[0]`, and `{col}` with `{array}.shape[1]`: does the guard have them so?"
    return Place(line, said)


def _length(node, lengths):
    """Return the array and the axis whose length an expression is; the axis is -1 for another expression."""
    match node:
        case ast.Subscript(ast.Attribute(ast.Name(array), "shape"), ast.Constant(int(axis))):
            return array, axis
        case ast.Name(name) if name in lengths:
            return lengths[name]
    return "", -1
