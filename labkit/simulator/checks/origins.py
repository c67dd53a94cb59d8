"""Where the names of an index come from: the assignment that is to be looked at if the index is wrong."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The last assignment of a name before an access."""

    name: str
    line: int
    value: ast.expr

    @property
    def text(self) -> str:
        return f"{self.name} = {ast.unparse(self.value)}"


def origins_of(tree: ast.FunctionDef, index: ast.expr, line: int) -> list[Origin]:
    """Return the origins of the names of an index in a line, as far as they are assigned alone or in a tuple."""
    found: dict[str, Origin] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and statement.lineno <= line:
            for target, value in _pairs(statement):
                last = found.get(target.id)
                if last is None or last.line <= statement.lineno:
                    found[target.id] = Origin(target.id, statement.lineno, value)
    names = dict.fromkeys(node.id for node in ast.walk(index) if isinstance(node, ast.Name))
    return [found[name] for name in names if name in found]


def splits_of(tree: ast.FunctionDef, index: ast.expr, line: int) -> list[Origin]:
    """Return the origins of an index that are parts of a number, or multiples of one, in the order of their lines.

    Parts are made by `//` or `%`.
    """
    splits = [origin for origin in origins_of(tree, index, line) if _is_split(origin.value)]
    return sorted(splits, key=lambda origin: origin.line)


def _pairs(statement):
    """Yield each name that an assignment sets, with its value."""
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield target, statement.value
        elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts, strict=False)
            yield from ((name, value) for name, value in pairs if isinstance(name, ast.Name))


def _is_split(value):
    match value:
        case ast.BinOp(_, ast.FloorDiv() | ast.Mod(), _):
            return True
        case ast.BinOp(left, ast.Mult(), right):
            return _is_split(left) or _is_split(right)
    return False
