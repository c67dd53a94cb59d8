"""Lines and tests that were left out: a sum over the lanes, a new reference, who stores, what is below 0."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, POSSIBLE, Change, quote, text_of
from labkit.checking.slips.several import assignments, change, expression, name_pairs, names_of
from labkit.checking.slips.structure import find_unread

_LANES = "cuda.threadIdx.x", "cuda.threadIdx.x % 32", "cuda.laneid"
_SHUFFLE = "cuda.shfl_xor_sync(0xFFFFFFFF, {name}, away)"
_OVER_LANES = "for away in (16, 8, 4, 2, 1):\n    {name} += " + _SHUFFLE


def add_missing(function: ast.FunctionDef, constants: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of a function; `constants` are whole numbers of its cell."""
    yield from _move_reference(function)
    yield from _store_once(function)
    yield from _add_over_lanes(function)
    yield from _test_unused(function)
    yield from _test_below_zero(function)
    yield from _leave_out_empty(function)
    yield from _subtract_unread(function)
    yield from _spread_rows(function, constants)


def _bodies(function):
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield node, field, body


def _with_body(function, owner, field, new, rank, line, said):
    old = getattr(owner, field)
    setattr(owner, field, new)
    text = text_of(function)
    setattr(owner, field, old)
    return Change(rank, line, said, text)


def _move_reference(function):
    """Set what weights refer to, a maximum so far, to the new one, by which sums were rescaled."""
    for owner, field, body in _bodies(function):
        for line in [node for node in body if isinstance(node, ast.Assign | ast.AugAssign)]:
            for call in [node for node in ast.walk(line.value) if isinstance(node, ast.Call)]:
                match call:
                    case ast.Call(func, [ast.BinOp(ast.Name(old), ast.Sub(), ast.Name(new))]):
                        pass
                    case _:
                        continue
                if text_of(func).rpartition(".")[2] not in ("exp", "exp2") or _is_set(function, old, new):
                    continue
                longer = [*body, *ast.parse(f"{old} = {new}").body]
                said = f"sums are rescaled from `{old}` to `{new}` here, and `{old}` stays as it was: "
                said += f"write `{old} = {new}` after line {body[-1].end_lineno}, indented like it."
                yield _with_body(function, owner, field, longer, HINTED, line.lineno, said)


def _is_set(function, old, new):
    return any(
        (name, text_of(value)) == (old, new) for line in assignments(function) for name, value in name_pairs(line)
    )


def _lanes(function) -> list[str]:
    pairs = [pair for line in assignments(function) for pair in name_pairs(line)]
    return [name for name, value in pairs if text_of(value) in _LANES] or [_LANES[0]]


def _store_once(function):
    """Let one lane of a warp, or one thread, store what only it has."""
    lane = _lanes(function)[0]
    for owner, field, body in _bodies(function):
        first = next((i for i in range(len(body)) if all(map(_is_store, body[i:]))), None)
        if first is None or _tests_for(owner, lane):
            continue
        new: list[Any] = [*body[:first], ast.If(expression(f"{lane} == 0"), body[first:], [])]
        what = (
            "this line stores" if first == len(body) - 1 else f"lines {body[first].lineno} to {body[-1].lineno} store"
        )
        said = f"{what} in all threads, and only one has the whole result: do so only `if {lane} == 0:`."
        yield _with_body(function, owner, field, new, LIKELY, body[first].lineno, said)


def _is_store(node):
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)


def _tests_for(owner, name):
    return isinstance(owner, ast.If) and name in names_of(owner.test)


def _add_over_lanes(function):
    """Add up the sums of all lanes of a warp, after the loop in which each lane makes its own."""
    text = text_of(function)
    reduced = set(re.findall(r"shfl_\w+\([^,]*, (\w+)", text))
    loops = [node for node in function.body if isinstance(node, ast.For)]
    added = [(node.target, loop) for loop in loops for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
    added += [
        (line.targets[0], loop)
        for loop in loops
        for line in assignments(loop)
        if isinstance(line.targets[0], ast.Name) and line.targets[0].id in names_of(line.value)
    ]
    ends = {target.id: loop for target, loop in added if isinstance(target, ast.Name) and "threadIdx" in text}
    for name, loop in ends.items() if "shfl_" in text else ():
        if name in reduced:
            continue
        for place in range(function.body.index(loop) + 1, len(function.body) + 1):
            before = function.body[place - 1]
            new = [*function.body[:place], *ast.parse(_OVER_LANES.format(name=name)).body, *function.body[place:]]
            said = f"`{name}` is that of one lane alone: add up those of all 32 after line {before.end_lineno}, "
            said += f"with `{_SHUFFLE.format(name=name)}` for 16, 8, 4, 2 and 1."
            yield _with_body(function, function, "body", new, LIKELY, before.end_lineno, said)


def _test_unused(function):
    """Compare an index with a length that nothing uses, in a test of others."""
    loaded = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    lengths = [arg.arg for arg in function.args.args if arg.arg not in loaded]
    made = [name for line in assignments(function) for name, _ in _targets(line)]
    for slot in list(slots(function)) if lengths else ():
        test = slot[3]
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
            continue
        for length in lengths:
            for name in dict.fromkeys(name for name in made if name not in names_of(test)):
                part = f"{name} < {length}"
                new = ast.BoolOp(ast.And(), [expression(part), *test.values])
                said = f"`{length}` is never used, and `{name}` may go past it: test `{part}` here, too."
                yield change(function, LIKELY, test.lineno, said, [(*slot, new)])


def _targets(line):
    """Return the names that a line sets, also those of which a tuple of values is not written out."""
    return [(n.id, line) for target in line.targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _test_below_zero(function):
    """Test that indices are not below 0, where they are compared with their lengths alone."""
    for slot in list(slots(function)):
        test = slot[3]
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
            continue
        bounded = [i for i, each in enumerate(test.values) if _is_upper_bound(each)]
        for places in [bounded, *([i] for i in bounded if len(bounded) > 1)] if bounded else ():
            values = [_from_zero(each) if i in places else each for i, each in enumerate(test.values)]
            new = ast.BoolOp(ast.And(), values)
            written = " and ".join(quote(values[i]) for i in places)
            said = f"indices below 0 pass this test, and are outside, too: write {written}."
            yield change(function, POSSIBLE, test.lineno, said, [(*slot, new)])


def _is_upper_bound(node):
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt)


def _from_zero(node):
    return ast.Compare(ast.Constant(0), [ast.LtE(), *node.ops], [node.left, *node.comparators])


def _leave_out_empty(function):
    """Leave out an iteration whose count or weight is 0: its other numbers may be any."""
    for loop in [node for node in ast.walk(function) if isinstance(node, ast.For)]:
        for place, line in enumerate(loop.body[:-1]):
            loaded = (
                [name for name, value in name_pairs(line) if _is_load(value)] if isinstance(line, ast.Assign) else []
            )
            for name in loaded:
                test = f"{name} > np.float32(0)"
                if test in text_of(function):
                    continue
                new = [*loop.body[: place + 1], ast.If(expression(test), loop.body[place + 1 :], [])]
                said = f"where `{name}` is 0, nothing is to be counted, whatever other arrays hold there: "
                said += f"do lines {line.lineno + 1} to {loop.body[-1].end_lineno} only `if {test}:`."
                yield _with_body(function, loop, "body", new, POSSIBLE, line.lineno, said)


def _is_load(node):
    return isinstance(node, ast.Subscript)


def _subtract_unread(function):
    """Subtract an element of an array that is filled and never read, in an exponent."""
    unread = find_unread(function)
    loops: list[Any] = [node for node in ast.walk(function) if isinstance(node, ast.For)] if unread else []
    for slot in list(slots(function)) if unread else ():
        match slot[3]:
            case ast.Call(func, [argument]) as call if text_of(func).rpartition(".")[2] in ("exp", "exp2"):
                around = [loop for loop in loops if call in ast.walk(loop) and isinstance(loop.target, ast.Name)]
            case _:
                continue
        for name in unread:
            for loop in around:
                new = ast.Call(func, [expression(f"{text_of(argument)} - {name}[{loop.target.id}]")], [])
                said = f"`{name}` is filled, and no line reads it: subtract it in the exponent, {quote(new)}."
                yield change(function, HINTED, call.lineno, said, [(*slot, new)])


def _spread_rows(function, constants):
    """Give what counts rows, in one number for row and column, the length of a row as a factor."""
    for slot in list(slots(function)):
        match slot[3]:
            case ast.BinOp(ast.BinOp() as rows, ast.Add(), ast.Name(column)) as index:
                pass
            case _:
                continue
        for size in constants:
            new = expression(f"({text_of(rows)}) * {size} + {column}")
            said = f"{quote(rows)} counts what is `{size}` long, and `{column}` goes along it: write {quote(new)}."
            yield change(function, POSSIBLE, index.lineno, said, [(*slot, new)])
