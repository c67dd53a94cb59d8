"""What ends the loops of a function: changes of it may run for ever."""

import ast
from typing import NamedTuple

from labkit.rebinding import names_in

_STRICT = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}
_MOVES = {(ast.Lt, ast.Add): "up", (ast.Lt, ast.Mult): "up", (ast.Gt, ast.Sub): "down"}  # past any bound


class End(NamedTuple):
    """The condition of a `while`, or a line that sets a name in one."""

    text: str
    strict: str  # with `<` for `<=`, and `>` for `>=`
    moves: str = ""  # what moves on past any bound, and where to


def find_ends(tree: ast.AST) -> list[End]:
    """Return the conditions of all `while`, and the lines that set a name in one."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    names = {node.id for loop in loops for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    return [*map(_end_of, loops), *(_step_of(line) for line in lines if names_in(line, ast.Store) & names)]


def _end_of(loop):
    text = ast.unparse(loop.test)
    match loop.test:
        case ast.Compare(ast.Name(name) as left, [sign], right):
            sign = _STRICT.get(type(sign), type(sign))
            steps = [node for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
            moves = [_MOVES.get((sign, type(step.op)), "") for step in steps if ast.unparse(step.target) == name]
            where = f"{name} {moves[0]}" if len(moves) == 1 and moves[0] else ""
            return End(text, ast.unparse(ast.Compare(left, [sign()], right)), where)
    return End(text, text)


def _step_of(line):
    text = ast.unparse(line)
    match line:
        case ast.AugAssign(ast.Name(name), ast.Add() | ast.Mult(), ast.Constant(int(step))) if step > 1:
            return End(text, text, f"{name} steps up")
    return End(text, text)


def is_sure_to_end(before: list[End], after: list[End]) -> bool:
    """Tell whether loops that ended still do: by the same conditions, stricter ones, or bounds that are passed."""
    return len(before) == len(after) and all(
        new.text == old.text or _is_stricter(old, new) or "" != new.moves == old.moves
        for old, new in zip(before, after, strict=True)
    )


def _is_stricter(old, new):
    less, more = (" - 1", " + 1") if "<" in old.text else (" + 1", " - 1")
    return new.text in (old.strict, old.text + less) or old.text == new.text + more
