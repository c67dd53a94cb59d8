"""Changes of whole lines: exchanged, moved out of a loop, left out, added."""

import ast
from collections.abc import Iterator

from labkit.checking.slips.change import BARRIER, LAST, LIKELY, POSSIBLE, SIMPLE, UNLIKELY, Change, quote, text_of
from labkit.checking.slips.structure import last_line, names_read

COPY_CALLS = "ptx.cp_async_commit()", "ptx.cp_async_wait(0)"


def change_lines(function, adds_barriers) -> Iterator[Change]:
    """Yield changes of whole lines: in another order, in or out of a loop, one more barrier, one line fewer."""
    bodies = [*_bodies(function)]
    missing = [BARRIER, *(COPY_CALLS if "ptx.cp_async(" in ast.unparse(function) else ())]
    for owner, body in bodies:
        for place, node in enumerate(list(body)):
            yield from _exchange(function, body, place)
            yield from _move_out(function, owner, body, place, bodies)
            yield from _leave_out(function, body, place)
            for call in missing if adds_barriers else ():
                yield from _add_call(function, body, place, node, call)


def _bodies(function) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield node, body


def _exchange(function, body, place):
    if place + 1 >= len(body):
        return
    one, other = body[place : place + 2]
    if not (_sets(one) & _gets(other) or _sets(other) & _gets(one) or _is_barrier(one) or _is_barrier(other)):
        return
    body[place : place + 2] = other, one
    text = text_of(function)
    body[place : place + 2] = one, other
    if _is_barrier(one):
        said = f"{_name(one)} stands too early: write it after line {last_line(other)}."
    elif _is_barrier(other):
        said = f"{_name(other)} stands too late: write it before line {one.lineno}."
        yield Change(LIKELY, other.lineno, said, text)
        return
    elif still := sorted(_sets(one) & _gets(other)):
        said = f"line {other.lineno} still needs `{still[0]}` as it was before: write this line after it."
    else:
        name = min(_sets(other) & _gets(one))
        said = f"this line reads `{name}` before line {other.lineno} has set it: write it after that line."
    is_short = isinstance(other, SIMPLE) or (
        isinstance(other, ast.If) and all(isinstance(n, SIMPLE) for n in other.body)
    )
    yield Change(LIKELY if _is_barrier(one) or is_short else UNLIKELY, one.lineno, said, text)


def _sets(node) -> set[str]:
    stored = [each for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store)]
    return {name for each in stored for name in names_read(each)[:1]}


def _gets(node) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _is_barrier(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _name(node):
    return "the barrier" if ast.unparse(node) == BARRIER else quote(node)


def _move_out(function, owner, body, place, bodies):
    """Move a line at the beginning or the end of a loop or an `if` in front of it or behind it, and the other way."""
    node = body[place]
    if isinstance(owner, ast.For | ast.If) and isinstance(node, SIMPLE | ast.Return) and len(body) > 1:
        outer = next(other for _, other in bodies if owner in other)
        what = "loop" if isinstance(owner, ast.For) else "`if`"
        if place == 0:
            said = f"this line belongs before the {what} of line {owner.lineno}, not in it"
            said += ", where each iteration begins anew." if what == "loop" else "."
            yield _moved(function, body, 0, outer, outer.index(owner), node, said)
        if place == len(body) - 1:
            said = f"this line belongs after the {what} of line {owner.lineno}, not in it"
            said += ", where each iteration does it." if what == "loop" else "."
            yield _moved(function, body, place, outer, outer.index(owner) + 1, node, said)
    for beside, at_end in ((place + 1, False), (place - 1, True)):
        other = body[beside] if 0 <= beside < len(body) else None
        if isinstance(node, SIMPLE) and isinstance(other, ast.For | ast.If):
            inner = [each for each in ast.walk(other) if isinstance(each, ast.For | ast.If) and _is_about(each, node)]
            for each in inner[:1] if at_end else inner:
                what = "loop" if isinstance(each, ast.For) else "`if`"
                end = "end" if at_end else "beginning"
                said = f"this line belongs into the {what} of line {each.lineno}, at its {end}"
                said += (
                    f", so that each iteration {'ends with it' if at_end else 'begins anew'}." * (what == "loop") or "."
                )
                yield _moved(function, body, place, each.body, len(each.body) if at_end else 0, node, said)


def _is_about(owner, node):
    """Tell whether a loop or an `if` uses what a line sets, or the line is a call."""
    return _is_barrier(node) or bool(_sets(node) & (_gets(owner) | _sets(owner)))


def _moved(function, source, place, target, at, node, said):
    """Return the change by which a statement goes from one body to a place of another."""
    del source[place]
    target.insert(at, node)
    text = text_of(function)
    del target[at]
    source.insert(place, node)
    if ast.unparse(node) == BARRIER:
        said = said.replace("this line", "the barrier of this line")
    rank = LIKELY if _is_barrier(node) else UNLIKELY if " `if` " in said else POSSIBLE
    return Change(rank, node.lineno, said, text)


def _leave_out(function, body, place):
    node = body[place]
    if isinstance(node, ast.For | ast.While | ast.FunctionDef):
        return
    body[place] = ast.Pass()
    text = text_of(function)
    if isinstance(node, ast.If) and not node.orelse:
        if isinstance(node.body[-1], ast.Continue | ast.Return):
            word = quote(node.body[-1])
            said = f"what comes after this {word} has to be done there, too: delete the `if` together with its {word}."
            yield Change(LIKELY, node.lineno, said, text)
        body[place : place + 1] = node.body
        unguarded = text_of(function)
        body[place : place + len(node.body)] = [node]
        yield Change(UNLIKELY, node.lineno, "what follows this `if` is to be done without it.", unguarded)
    else:
        body[place] = node
        yield Change(LAST, node.lineno, f"{quote(node)} is one line too many: leave it out.", text)
    body[place] = node


def _add_call(function, body, place, node, call):
    """Add a barrier, or what ends a group of copies or waits for it, before a line or at the end of its loop."""
    for at in (place, len(body)) if place + 1 == len(body) else (place,):
        body.insert(at, ast.parse(call).body[0])
        text = text_of(function)
        del body[at]
        before = body[at - 1] if at else None
        if call in [ast.unparse(each) for each in body[max(at - 1, 0) : at + 1]]:  # it is there
            continue
        where = f"before line {node.lineno}" if before is None else f"after line {last_line(before)}"
        where += f", outside of the loop of line {before.lineno}" if isinstance(before, ast.For) else ""
        is_arrive = at == place and "_arrive(" in ast.unparse(node) and isinstance(node, ast.Expr)
        where = f"before line {node.lineno}" if is_arrive else where
        what = {BARRIER: "a barrier"}.get(call, f"`{call}`")
        said = f"{what} is missing: write {'it' if what != 'a barrier' else f'`{call}`'} {where}."
        follows_copy = isinstance(before, ast.Expr) and call != BARRIER and "ptx.cp_async(" in ast.unparse(before)
        is_needed = follows_copy or (is_arrive and call == COPY_CALLS[1])
        line = node.lineno if is_arrive else (before or node).lineno
        is_there = call != BARRIER and call in ast.unparse(function)  # for other copies
        yield Change(UNLIKELY if is_there else LIKELY if is_needed else POSSIBLE, line, said, text)
