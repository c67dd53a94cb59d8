"""Changes in several places at once, for slips that are made twice: in rows and in columns; and what was left out."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labkit.checking.changes import LIKELY, POSSIBLE, UNLIKELY, Change
from labkit.checking.mutants import put, slots

MOST_PLACES = 6  # of one change
ZERO = "np.float32(0)"
_SIGNS = {ast.Add: "+", ast.Sub: "-"}
_STATEMENTS = ast.Assign | ast.AugAssign


def list_repeated_changes(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the changes of a function, each with the sentence on what is wrong."""
    yield from _turn_signs(function)
    for statement in [node for node in ast.walk(function) if isinstance(node, _STATEMENTS)]:
        yield from _add_unused(function, statement)
        yield from _add_loop_variable(function, statement)
        yield from _rename(function, statement)
    yield from _move_factors(function)
    yield from _start_sums(function)


@contextmanager
def _changed(places):
    """Put other nodes in places of the form (parent, field, place, node, other), and take them out again."""
    for parent, field, place, _, other in places:
        put(parent, field, place, other)
    yield
    for parent, field, place, node, _ in places:
        put(parent, field, place, node)


def _change(function, rank, line, said, places) -> Change:
    with _changed(places):
        return Change(rank, line, said, _text(function))


def _text(node):
    return ast.unparse(ast.fix_missing_locations(node))


def _loads(node, kind=ast.Name):
    """Return the slots of what a node loads, besides the name of an array."""
    found = [slot for slot in slots(node) if isinstance(slot[3], kind)]
    arrays = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Subscript | ast.Attribute)}
    return [slot for slot in found if isinstance(slot[3].ctx, ast.Load) and id(slot[3]) not in arrays]


def _turn_signs(function):
    """Turn the sign of a name wherever it is added, or leave it out there."""
    groups = defaultdict(list)
    for slot in slots(function):
        match slot[3]:
            case ast.BinOp(_, ast.Add() | ast.Sub() as sign, ast.Name(name)):
                groups[type(sign), name].append(slot)
    for (sign, name), found in groups.items():
        if not 2 <= len(found) <= MOST_PLACES:
            continue
        other = ast.Sub if sign is ast.Add else ast.Add
        line, was = found[0][3].lineno, f"`{_SIGNS[sign]} {name}`"
        others = sorted({slot[3].lineno for slot in found} - {line})
        where = f"here and in line {others[0]}" if others else "in this line"
        turned = [(*slot, ast.BinOp(slot[3].left, other(), slot[3].right)) for slot in found]
        said = f"{was} has the wrong sign {where}: write `{_SIGNS[other]} {name}`."
        yield _change(function, LIKELY, line, said, turned)
        said = f"{was} is one term too many {where}: leave it out."
        yield _change(function, UNLIKELY, line, said, [(*slot, slot[3].left) for slot in found])


def _add_unused(function, statement):
    """Add a parameter that is never used to each of the values that a line sets together."""
    if not isinstance(statement.value, ast.Tuple):
        return
    loaded = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    values = [(statement.value, "elts", i, value) for i, value in enumerate(statement.value.elts)]
    for name in [arg.arg for arg in function.args.args if arg.arg not in loaded]:
        for sign in (ast.Sub, ast.Add, ast.Mult):
            others = [ast.BinOp(value, sign(), ast.Name(name, ast.Load())) for *_, value in values]
            said = f"`{name}` is never used: write `{_text(others[0])}`, and so on."
            places = [(*slot, other) for slot, other in zip(values, others, strict=True)]
            yield _change(function, LIKELY, statement.lineno, said, places)


def _add_loop_variable(function, statement):
    """Add the variable of a loop around a line that does not use it to an index."""
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)]
    targets: list[Any] = [loop.target for loop in loops if statement in ast.walk(loop)]
    for variable in [target.id for target in targets]:
        found = _loads(statement)
        names = dict.fromkeys(slot[3].id for slot in found)
        for name in names if variable not in names else ():
            new = ast.BinOp(ast.Name(variable, ast.Load()), ast.Add(), ast.Name(name, ast.Load()))
            places = [(*slot, new) for slot in found if slot[3].id == name]
            said = f"`{variable}` is left out: write `{variable} + {name}` for `{name}` in this line."
            yield _change(function, POSSIBLE, statement.lineno, said, places)


def _rename(function, statement):
    """Take another of the names that were set together, wherever a line reads one."""
    assigned: list[Any] = [node.targets[0] for node in ast.walk(function) if isinstance(node, ast.Assign)]
    groups = [[n.id for n in target.elts if isinstance(n, ast.Name)] for target in assigned if _is_tuple(target)]
    found = _loads(statement)
    for name in dict.fromkeys(slot[3].id for slot in found):
        places = [slot for slot in found if slot[3].id == name]
        others = {other for group in groups if name in group for other in group if other != name}
        for other in sorted(others) if len(places) > 1 else ():
            said = f"`{name}` is not the one that is needed in this line: write `{other}`."
            new = [(*slot, ast.Name(other, ast.Load())) for slot in places]
            yield _change(function, POSSIBLE, statement.lineno, said, new)


def _is_tuple(node):
    return isinstance(node, ast.Tuple)


def _move_factors(function):
    """Give a factor to the other term; divide by a size; split off a remainder; lengthen a loop by a factor."""
    sizes = dict.fromkeys(
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(text in _text(node.value) for text in (".shape", ".size"))
        for target in ast.walk(node.targets[0])
        if isinstance(target, ast.Name)
    )
    sizes |= dict.fromkeys(arg.arg for arg in function.args.args if arg.arg.isupper())
    ranges = [n for n in ast.walk(function) if isinstance(n, ast.Call) and _text(n.func) == "range"]
    sizes |= dict.fromkeys(arg.id for call in ranges for arg in call.args if isinstance(arg, ast.Name))
    for slot in list(slots(function)):
        node = slot[3]
        match node:
            case ast.BinOp(one, ast.Add(), ast.BinOp(other, ast.Mult(), factor)) | ast.BinOp(
                ast.BinOp(one, ast.Mult(), factor), ast.Add(), other
            ):
                first = _text(node.left) == _text(one)
                new = (one, other) if first else (other, one)
                new = ast.BinOp(ast.BinOp(new[0], ast.Mult(), factor), ast.Add(), new[1])
                said = f"the factor `{_text(factor)}` belongs to the other term: write `{_text(new)}`."
                yield _change(function, POSSIBLE, node.lineno, said, [(*slot, new)])
            case ast.BinOp(left, ast.Div(), right):
                for size in sizes:
                    count = ast.Call(ast.parse("np.float32", mode="eval").body, [ast.Name(size, ast.Load())], [])
                    new = ast.BinOp(left, ast.Div(), ast.BinOp(right, ast.Mult(), count))
                    said = f"this is not divided by `{size}`: write `{_text(new)}`."
                    yield _change(function, LIKELY, node.lineno, said, [(*slot, new)])
            case ast.BinOp(_, ast.FloorDiv(), _):
                for size in sizes:
                    new = ast.BinOp(node, ast.Mod(), ast.Name(size, ast.Load()))
                    said = f"the remainder by `{size}` is missing: write `{_text(new)}`."
                    yield _change(function, UNLIKELY, node.lineno, said, [(*slot, new)])
            case ast.Call(ast.Name("range"), args):
                stop = args[min(len(args), 2) - 1]
                for size in sizes:
                    new = ast.BinOp(stop, ast.Mult(), ast.Name(size, ast.Load()))
                    new = ast.Call(node.func, [new if arg is stop else arg for arg in args], [])
                    said = f"this `range` ends too early: write `{_text(new)}`."
                    yield _change(function, POSSIBLE, node.lineno, said, [(*slot, new)])


def _start_sums(function):
    """Set sums to zero before a loop that adds to them, or in each iteration of the loop around that one."""
    added = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            added[node.target.id].append(node)
    for parent, field, place, loop in [slot for slot in slots(function) if isinstance(slot[3], ast.For)]:
        inside = set(ast.walk(loop))
        here = [name for name, lines in added.items() if inside & {*lines}]
        before = [name for name in here if not inside >= {*added[name]}]
        for names in _alone_and_together(before) if place is not None else ():
            said = (
                f"{_list(names)} still held before line {loop.lineno} what other lines added: begin at `{ZERO}` there."
            )
            yield _inserted(function, getattr(parent, field), place, names, loop.lineno, said)
        for names in _alone_and_together(here):
            said = f"{_list(names)} kept what earlier iterations added: begin each at `{ZERO}`."
            yield _inserted(function, loop.body, 0, names, loop.lineno, said)


def _alone_and_together(names):
    return [*([name] for name in names), *([names] if len(names) > 1 else [])]


def _list(names):
    return " and ".join(f"`{name}`" for name in names)


def _inserted(function, body, place, names, line, said):
    body.insert(place, ast.parse(f"{' = '.join(names)} = {ZERO}").body[0])
    text = _text(function)
    del body[place]
    return Change(POSSIBLE, line, said, text)
