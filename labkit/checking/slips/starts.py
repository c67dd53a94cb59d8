"""Changes of where sums begin: before a loop, or anew in each of its iterations."""

import ast
from collections import defaultdict
from itertools import combinations

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, POSSIBLE, Change, text_of
from labkit.checking.slips.several import names_of, stored_names, with_bodies

ZERO = "np.float32(0)"


def change_starts(function):
    """Yield the changes of a function."""
    yield from _move_starts(function)
    yield from _begin_outside(function)
    yield from _start_sums(function)


def _is_start(node):
    """Tell whether a statement only sets names or elements to a number."""
    match node:
        case ast.Assign(_, ast.Constant()):
            return True
        case ast.Assign(_, ast.Call(func, [ast.Constant() | ast.UnaryOp()])):
            return text_of(func).startswith(("np.", "float"))
        case ast.For(_, _, body):
            return all(_is_start(each) for each in body)
    return False


def _move_starts(function):
    """Move lines that set sums to a number from the beginning of a loop to the place before it, and the other way."""
    for parent, field, place, loop in list(slots(function)):
        if not isinstance(loop, ast.For) or place is None:
            continue
        outer = getattr(parent, field)
        first = next((i for i, node in enumerate(loop.body) if not _is_start(node)), 0)
        for begin, end in combinations(range(first + 1), 2):
            moved = loop.body[begin:end]
            said = f"{_lines(moved)} anew in each iteration of the loop of line {loop.lineno}: "
            said += f"move {'them' if _is_long(moved) else 'it'} before that loop."
            new = [*outer[:place], *moved, *outer[place:]], [*loop.body[:begin], *loop.body[end:]]
            yield with_bodies(function, (parent, field, new[0]), (loop, "body", new[1]), moved[0].lineno, said)
        start = place
        while start and _is_start(outer[start - 1]):
            start -= 1
            moved = outer[start:place]
            if not _is_long(moved):
                continue
            said = f"{_lines(moved)} once, before the loop of line {loop.lineno}, whose iterations begin anew: "
            said += "move them to its beginning."
            new = [*outer[:start], *outer[place:]], [*moved, *loop.body]
            yield with_bodies(function, (parent, field, new[0]), (loop, "body", new[1]), moved[0].lineno, said)


def _is_long(statements):
    return _end(statements[-1]) > statements[0].lineno


def _end(node):
    return node.end_lineno or node.lineno


def _lines(statements):
    """Say which lines set what."""
    name = sorted(_set_names(statements))[0]
    if not _is_long(statements):
        return f"this line sets `{name}`"
    return f"lines {statements[0].lineno} to {_end(statements[-1])} set `{name}`"


def _set_names(statements):
    targets = [t for each in statements for n in ast.walk(each) if isinstance(n, ast.Assign) for t in n.targets]
    return {text_of(target.value if isinstance(target, ast.Subscript) else target) for target in targets}


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
    text = text_of(function)
    del body[place]
    return Change(POSSIBLE, line, said, text)


def _begin_outside(function):
    """Begin sums before the loop that adds to them, where a line in the midst of it sets them, or all of them."""
    outer = [slot for slot in slots(function) if isinstance(slot[3], ast.For) and slot[2] is not None]
    for parent, field, place, loop in outer:
        for path, line in _starts_in(loop):
            target = line.targets[0]
            name = text_of(target.value if isinstance(target, ast.Subscript) else target)
            inner = [each for each in path[1:] if isinstance(each, ast.For)]
            indices = names_of(target) - {name}
            added = [n for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and _name_of(n.target) == name]
            if not added or indices & _stored_in(loop, inner) or _begins_with(loop, path):
                continue
            needed = [
                each for each in inner if {n.id for n in ast.walk(each.target) if isinstance(n, ast.Name)} & indices
            ]
            new: list[ast.stmt] = [line]
            for each in reversed(needed):
                new = [ast.For(each.target, each.iter, new, [], lineno=each.lineno)]
            said = f"this sets `{name}` anew in each iteration of the loop of line {loop.lineno}: "
            said += f"begin once, before line {loop.lineno}{', by a loop of its own' if needed else ''}."
            owner, part, at = _slot_of(path, line)
            body = getattr(owner, part)
            kept = [*body[:at], *body[at + 1 :]]
            around = getattr(parent, field)
            setattr(owner, part, kept or [ast.Pass()])
            setattr(parent, field, [*around[:place], *new, *around[place:]])
            text = text_of(function)
            setattr(parent, field, around)
            setattr(owner, part, body)
            yield Change(HINTED, line.lineno, said, text)


def _begins_with(loop, path):
    """Tell whether a loop of starts alone stands at the beginning of another: then it can be moved as it is."""
    return len(path) > 1 and all(map(_is_start, loop.body[: loop.body.index(path[1]) + 1]))


def _name_of(target):
    return text_of(target.value if isinstance(target, ast.Subscript) else target)


def _starts_in(loop):
    """Yield the lines in a loop that set something to a number, each behind the statements around it."""
    todo: list[tuple[ast.For, ...]] = [(loop,)]
    while todo:
        path = todo.pop()
        for each in path[-1].body:
            if isinstance(each, ast.For):
                todo.append((*path, each))
            elif isinstance(each, ast.Assign) and len(each.targets) == 1 and _is_start(each):
                yield path, each


def _stored_in(loop, inner):
    """Return the names that a loop sets, besides those that the loops in it count by."""
    return stored_names(loop) - set().union(*(names_of(each.target) for each in inner))


def _slot_of(path, line):
    return path[-1], "body", path[-1].body.index(line)
