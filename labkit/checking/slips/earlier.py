"""Changes of what a line reads: as it was before another line changed it, or with what that line is about to add."""

import ast
from collections.abc import Iterator
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, SIMPLE, Change, quote, text_of
from labkit.checking.slips.several import change, changed, expression

KEPT = "before"  # the name of a value that is kept


def change_times(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the changes of a function."""
    for parent, field, place, node in list(slots(function)):
        if place is None or not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        body = getattr(parent, field)
        if isinstance(node, ast.AugAssign):
            yield from _take_apart(function, body, place)
        yield from _keep_before(function, (parent, field), body, place)


def _take_apart(function, body, place):
    """Take out what a line has added to a sum already, or put in what a later line adds."""
    line = body[place]
    if not isinstance(line.op, ast.Add | ast.Sub) or not isinstance(line.target, ast.Name):
        return
    undone = ast.Sub() if isinstance(line.op, ast.Add) else ast.Add()
    for other in body:
        is_after = other.lineno > line.lineno
        found = [slot for slot in _loads(other, line.target.id) if other is not line]
        if not found:
            continue
        new = ast.BinOp(ast.Name(line.target.id, ast.Load()), undone if is_after else line.op, line.value)
        said = f"`{line.target.id}` {'already includes' if is_after else 'lacks'} {quote(line.value)}"
        said += (
            f", which line {line.lineno} has added: " if is_after else f", which line {line.lineno} adds only later: "
        )
        for places in [found] if len(found) == 1 else [found, *([slot] for slot in found)]:
            yield change(
                function, LIKELY, places[0][3].lineno, f"{said}write {quote(new)}.", [(*slot, new) for slot in places]
            )


def _loads(node, name):
    """Return the slots of a name that a statement, or one inside it, reads."""
    found = [slot for slot in slots(ast.Module([node], [])) if isinstance(slot[3], ast.Name | ast.Subscript)]
    return [slot for slot in found if isinstance(slot[3].ctx, ast.Load) and text_of(slot[3]) == name]


def _keep_before(function, owner, body, place):
    """Keep what a line replaces, for a later line that reads it."""
    line = body[place]
    target = line.targets[0] if isinstance(line, ast.Assign) else line.target
    if not isinstance(target, ast.Name | ast.Subscript):
        return
    name = text_of(target)
    if isinstance(target, ast.Name) and isinstance(line, ast.Assign) and not _loads(ast.Expr(line.value), name):
        return  # it holds nothing that could be meant
    for away, other in enumerate(body[place + 1 :]):
        found = _loads(other, name) if isinstance(other, SIMPLE) else []
        if found:
            kept: Any = ast.Assign([ast.Name(KEPT, ast.Store())], expression(name), lineno=line.lineno)
            places = [(*slot, ast.Name(KEPT, ast.Load())) for slot in found]
            longer = [(*owner, None, body, [*body[:place], kept, *body[place:]])]
            said = f"line {line.lineno} has already replaced `{name}`, which this line needs as it was: "
            said += "keep the old value in a name of its own before that line, and read that here."
            with changed(places):
                rank = HINTED if not away and isinstance(target, ast.Subscript) else LIKELY
                yield change(function, rank, other.lineno, said, longer)
