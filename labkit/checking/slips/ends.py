"""What ends the loops of a function: changes of it may run for ever."""

import ast
from typing import NamedTuple

from labkit.rebinding import names_in

_STRICT = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}
_GROWING = (ast.Lt, ast.Add), (ast.LtE, ast.Add), (ast.Gt, ast.Sub), (ast.GtE, ast.Sub)


class End(NamedTuple):
    """The condition of a `while`, or a line that sets a name in one."""

    text: str
    strict: str  # with `<` for `<=`, and `>` for `>=`
    is_passed: bool = False  # what is compared moves on by sums, past any bound


def find_ends(tree: ast.AST) -> list[End]:
    """Return the conditions of all `while`, and the lines that set a name in one."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    names = {node.id for loop in loops for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    lines = [ast.unparse(line) for line in lines if names_in(line, ast.Store) & names]
    return [*(_end_of(loop) for loop in loops), *(End(line, line) for line in lines)]


def _end_of(loop):
    text, test = ast.unparse(loop.test), loop.test
    match test:
        case ast.Compare(left, [sign], right):
            strict = ast.unparse(ast.Compare(left, [_STRICT.get(type(sign), type(sign))()], right))
            steps = [node for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
            moves = [type(step.op) for step in steps if ast.unparse(step.target) == ast.unparse(left)]
            return End(text, strict, len(moves) == 1 and (type(sign), moves[0]) in _GROWING)
    return End(text, text)


def is_sure_to_end(before: list[End], after: list[End]) -> bool:
    """Tell whether loops that ended still do: by the same conditions, stricter ones, or ones that are passed."""
    return len(before) == len(after) and all(
        new.text == old.text or new.strict == old.strict and (new.text == new.strict or new.is_passed)
        for old, new in zip(before, after, strict=True)
    )
