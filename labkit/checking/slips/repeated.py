"""Changes in several places at once, for slips that are made twice: in rows and in columns; and what was left out."""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips.bits import change_bits
from labkit.checking.slips.brackets import change_brackets
from labkit.checking.slips.change import LIKELY, MOST_CHARACTERS, POSSIBLE, UNLIKELY, Change, text_of
from labkit.checking.slips.earlier import change_times
from labkit.checking.slips.grid import take_other_block
from labkit.checking.slips.lengths import add_difference
from labkit.checking.slips.missing import add_missing
from labkit.checking.slips.places import change_places
from labkit.checking.slips.scales import scale_names
from labkit.checking.slips.several import assignments, change, changed, expression, name_pairs, names_of
from labkit.checking.slips.starts import change_starts
from labkit.checking.slips.together import change_signals

MOST_PLACES = 6  # of one change
_SIGNS = {ast.Add: "+", ast.Sub: "-"}
_STATEMENTS = ast.Assign | ast.AugAssign


def list_repeated_changes(function: ast.FunctionDef, constants: Collection[str] = ()) -> Iterator[Change]:
    """Yield the changes of a function, each with the sentence on what is wrong.

    `constants` are the whole numbers among the names that the function reads from its cell.
    """
    sizes = _sizes(function, constants)
    yield from change_signals(function)
    yield from change_starts(function)
    yield from change_places(function)
    yield from change_brackets(function)
    yield from change_times(function)
    yield from add_missing(function, constants)
    yield from take_other_block(function)
    yield from change_bits(function)
    yield from _exchange_quotients(function)
    yield from _test_remainders(function)
    yield from _compare_otherwise(function)
    yield from add_difference(function)
    yield from _turn_one_of_two(function)
    yield from _keep_apart(function, sizes)
    yield from _write_float32(function)
    yield from scale_names(function, sizes)
    yield from _turn_signs(function)
    for statement in [node for node in ast.walk(function) if isinstance(node, _STATEMENTS)]:
        yield from _add_unused(function, statement)
        yield from _add_loop_variable(function, statement)
        yield from _rename(function, statement, sizes)
    yield from _move_factors(function)


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
        yield change(function, LIKELY, line, said, turned)
        said = f"{was} is one term too many {where}: leave it out."
        yield change(function, UNLIKELY, line, said, [(*slot, slot[3].left) for slot in found])


def _add_unused(function, statement):
    """Add a parameter that is never used to each of the values that a line sets together."""
    if not isinstance(statement.value, ast.Tuple):
        return
    loaded = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    values = [(statement.value, "elts", i, value) for i, value in enumerate(statement.value.elts)]
    for name in [arg.arg for arg in function.args.args if arg.arg not in loaded]:
        for sign in (ast.Sub, ast.Add, ast.Mult):
            others = [ast.BinOp(value, sign(), ast.Name(name, ast.Load())) for *_, value in values]
            said = f"`{name}` is never used: write `{text_of(others[0])}`, and so on."
            places = [(*slot, other) for slot, other in zip(values, others, strict=True)]
            yield change(function, LIKELY, statement.lineno, said, places)


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
            yield change(function, POSSIBLE, statement.lineno, said, places)


def _rename(function, statement, sizes):
    """Take another size, or another of the names that were set together, wherever a line reads one."""
    assigned: list[Any] = [node.targets[0] for node in ast.walk(function) if isinstance(node, ast.Assign)]
    groups = [[n.id for n in target.elts if isinstance(n, ast.Name)] for target in assigned if _is_tuple(target)]
    groups.append(sizes)
    found = _loads(statement)
    of_value = {n for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    groups_of_places = []
    for name in dict.fromkeys(slot[3].id for slot in found):
        places = [slot for slot in found if slot[3].id == name]
        groups_of_places.append((name, places))
        inner = [slot for slot in places if slot[3] in of_value]
        groups_of_places += [(name, inner)] if len(inner) < len(places) else []
    for name, places in groups_of_places:
        others = {other: "" for group in groups if name in group for other in group if other != name}
        others |= _derived(function, name, statement.lineno)
        for other in sorted(others) if len(places) > 1 else ():
            new = [(*slot, ast.Name(other, ast.Load())) for slot in places]
            with changed(new):
                line = text_of(statement)
            said = f"`{name}` is not the one that is needed in this line{others[other]}: write `{other}`"
            said += f", `{line}`." if len(line) <= MOST_CHARACTERS else "."
            divides = [slot for slot in places if isinstance(getattr(slot[0], "op", None), ast.FloorDiv | ast.Mod)]
            yield change(function, LIKELY if divides == places else POSSIBLE, statement.lineno, said, new)


def _derived(function, name, line):
    """Return the names that an earlier line makes of one, and those of which it is made, with a clause on that line."""
    found = {}
    for each in assignments(function):
        for other, value in name_pairs(each) if each.lineno < line else ():
            used = {n.id for _, _, _, n in _loads(ast.Expr(value))} - {other}
            if name in used:
                found[other] = f", but what line {each.lineno} makes of it"
            if other == name:
                found |= dict.fromkeys(used, f", but a part of it, see line {each.lineno}")
    return found


def _is_tuple(node):
    return isinstance(node, ast.Tuple)


def _sizes(function, constants):
    """Return the names of lengths: those of arrays, those that end a `range`, and constants."""
    sizes = dict.fromkeys(
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(text in text_of(node.value) for text in (".shape", ".size"))
        for target in ast.walk(node.targets[0])
        if isinstance(target, ast.Name)
    )
    sizes |= dict.fromkeys(arg.arg for arg in function.args.args if arg.arg.isupper())
    ranges = [n for n in ast.walk(function) if isinstance(n, ast.Call) and text_of(n.func) == "range"]
    sizes |= dict.fromkeys(arg.id for call in ranges for arg in call.args if isinstance(arg, ast.Name))
    return [*sizes, *(name for name in constants if name not in sizes)]


def _move_factors(function):
    """Give a factor to the other term; divide by a size; split off a remainder; lengthen a loop by a factor."""
    sizes = _sizes(function, ())
    for slot in list(slots(function)):
        node = slot[3]
        match node:
            case ast.BinOp(one, ast.Add(), ast.BinOp(other, ast.Mult(), factor)) | ast.BinOp(
                ast.BinOp(one, ast.Mult(), factor), ast.Add(), other
            ):
                first = text_of(node.left) == text_of(one)
                new = (one, other) if first else (other, one)
                new = ast.BinOp(ast.BinOp(new[0], ast.Mult(), factor), ast.Add(), new[1])
                said = f"the factor `{text_of(factor)}` belongs to the other term: write `{text_of(new)}`."
                yield change(function, POSSIBLE, node.lineno, said, [(*slot, new)])
            case ast.BinOp(left, ast.Div(), right):
                for size in sizes:
                    count = ast.Call(ast.parse("np.float32", mode="eval").body, [ast.Name(size, ast.Load())], [])
                    new = ast.BinOp(left, ast.Div(), ast.BinOp(right, ast.Mult(), count))
                    said = f"this is not divided by `{size}`: write `{text_of(new)}`."
                    yield change(function, LIKELY, node.lineno, said, [(*slot, new)])
            case ast.BinOp(_, ast.FloorDiv(), _):
                for size in sizes:
                    new = ast.BinOp(node, ast.Mod(), ast.Name(size, ast.Load()))
                    said = f"the remainder by `{size}` is missing: write `{text_of(new)}`."
                    yield change(function, UNLIKELY, node.lineno, said, [(*slot, new)])
            case ast.Call(ast.Name("range"), args):
                stop = args[min(len(args), 2) - 1]
                for size in sizes:
                    new = ast.BinOp(stop, ast.Mult(), ast.Name(size, ast.Load()))
                    new = ast.Call(node.func, [new if arg is stop else arg for arg in args], [])
                    said = f"this `range` ends too early: write `{text_of(new)}`."
                    yield change(function, POSSIBLE, node.lineno, said, [(*slot, new)])


def _exchange_quotients(function):
    """Exchange the quotient and the remainder of two numbers, in a line and in two that follow each other."""
    yield from _exchange_operations(function)
    for statement in [node for node in ast.walk(function) if isinstance(node, _STATEMENTS)]:
        found = [slot for slot in slots(statement) if isinstance(slot[3], ast.BinOp)]
        quotients = [slot for slot in found if isinstance(slot[3].op, ast.FloorDiv)]
        remainders = [slot for slot in found if isinstance(slot[3].op, ast.Mod)]
        for one in quotients:
            for other in remainders:
                if ast.dump(one[3].left) == ast.dump(other[3].left) and ast.dump(one[3].right) == ast.dump(
                    other[3].right
                ):
                    said = f"`{text_of(one[3])}` and `{text_of(other[3])}` are exchanged in this line: "
                    said += "write each in the place of the other."
                    yield change(function, LIKELY, statement.lineno, said, [(*one, other[3]), (*other, one[3])])


def _exchange_operations(function):
    """Exchange `//` and `%` of a line and the next one, by one number."""
    kinds, signs = {ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv}, {ast.FloorDiv: "//", ast.Mod: "%"}
    operations: list[tuple[int, Any, str]] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(_, ast.BinOp(_, sign, right) as one) | (ast.AugAssign(_, sign, right) as one):
                operations += [(one.lineno, one, text_of(right))] if type(sign) in kinds else []
    for line, one, by in operations:
        for next_line, other, next_by in operations:
            if next_line == line + 1 and by == next_by and type(one.op) is not type(other.op):
                places = [(each, "op", None, each.op, kinds[type(each.op)]()) for each in (one, other)]
                said = f"`{signs[type(one.op)]}` here and `{signs[type(other.op)]}` in line {next_line} are exchanged: "
                said += "`//` leaves out the last digit, and `%` takes it alone."
                yield change(function, LIKELY, line, said, places)


def _test_remainders(function):
    """Test that nothing is over where lines divide by a number, in the condition that looks at the quotients."""
    groups: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for line in assignments(function):
        for name, value in name_pairs(line):
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
                rest = text_of(ast.BinOp(value.left, ast.Mod(), value.right))
                groups[text_of(value.right)][name] = line.lineno, f"{rest} == 0"
    for quotients in groups.values():
        for slot in list(slots(function)):
            node = slot[3]
            is_test = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)
            is_test |= isinstance(node, ast.Compare) and not isinstance(slot[0], ast.BoolOp)
            found = [pair for name, pair in quotients.items() if name in names_of(node)] if is_test else []
            if found:
                lines, tests = sorted({line for line, _ in found}), [test for _, test in found]
                new = ast.BoolOp(ast.And(), [*getattr(node, "values", [node]), *map(expression, tests)])
                where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} and {lines[-1]}"
                said = f"`//` in {where} rounds down, also where a remainder is left: add `{' and '.join(tests)}` here."
                yield change(function, LIKELY, node.lineno, said, [(*slot, new)])


def _compare_otherwise(function):
    """Change a comparison that is made alike several times."""
    groups = defaultdict(list)
    others = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
    signs = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
    for slot in slots(function):
        match slot[3]:
            case ast.Compare(_, [sign], [right]) if type(sign) in others:
                groups[type(sign), text_of(right)].append(slot)
    for (sign, right), found in groups.items():
        if 2 <= len(found) <= MOST_PLACES:
            places = [(*slot, ast.Compare(slot[3].left, [others[sign]()], slot[3].comparators)) for slot in found]
            lines = sorted({slot[3].lineno for slot in found})
            where = f"in lines {lines[0]} to {lines[-1]}" if len(lines) > 1 else "in this line"
            why = "also holds" if "=" in signs[sign] else "leaves out the case"
            said = f"`{signs[sign]} {right}` {why} {'if' if '=' in signs[sign] else 'that'} both are equal: "
            said += f"write `{signs[others[sign]]} {right}` {where}."
            yield change(function, LIKELY, lines[0], said, places)


def _turn_one_of_two(function):
    """Turn the sign of a term that another line has with the other sign."""
    found = [slot for slot in slots(function) if isinstance(slot[3], ast.BinOp)]
    added = [slot for slot in found if type(slot[3].op) in _SIGNS and isinstance(slot[3].right, ast.BinOp)]
    for slot in sorted(added, key=lambda slot: -slot[3].lineno):
        node = slot[3]
        for _, _, _, other in added:
            if text_of(other.right) == text_of(node.right) and type(other.op) is not type(node.op):
                new = ast.BinOp(node.left, other.op, node.right)
                said = f"`{text_of(node)}` goes the other way than `{text_of(other)}` in line {other.lineno}: "
                said += f"write `{text_of(new)}`."
                yield change(function, LIKELY, node.lineno, said, [(*slot, new)])


def _keep_apart(function, sizes):
    """Put one kind of data behind another that the same shared array holds: in the line that stores and that loads."""
    shared = {
        name: None
        for line in assignments(function)
        for name, value in name_pairs(line)
        if "shared.array(" in text_of(value) and not isinstance(value, ast.Tuple)
    }
    found = [slot for slot in slots(function) if slot[1] == "slice" and not isinstance(slot[3], ast.Tuple)]
    for name in shared:
        here = [slot for slot in found if text_of(slot[0].value) == name]
        stores = [slot for slot in here if isinstance(slot[0].ctx, ast.Store)]
        loads = [slot for slot in here if isinstance(slot[0].ctx, ast.Load)]
        for store, load in [(one, other) for one in stores for other in loads] if len(here) > 2 else ():
            for size in sizes:
                new = [(*slot, ast.BinOp(ast.Name(size, ast.Load()), ast.Add(), slot[3])) for slot in (store, load)]
                said = f"this overwrites what `{name}` holds: store at `{name}[{text_of(new[0][4])}]`, behind it, "
                said += f"and load from `{name}[{text_of(new[1][4])}]` in line {load[3].lineno}."
                yield change(function, POSSIBLE, store[3].lineno, said, new)


def _write_float32(function):
    """Write all whole numbers of sums and products as float32, by the names that hold them if there are such."""
    twins = {
        text_of(value.args[0]): name
        for line in assignments(function)
        for name, value in name_pairs(line)
        if isinstance(value, ast.Call) and text_of(value.func) == "np.float32" and len(value.args) == 1
    }
    inside = {n for part in ast.walk(function) if isinstance(part, ast.Subscript | ast.Call) for n in ast.walk(part)}
    places = [
        (*slot, expression(twins[text_of(slot[3])]))
        for slot in slots(function)
        if isinstance(slot[3], ast.Constant) and isinstance(slot[0], ast.BinOp) and slot[3] not in inside
        if text_of(slot[3]) in twins
    ]
    if len(places) > 1:
        lines = [str(line) for line in sorted({slot[3].lineno for slot in places})]
        names = sorted({f"`{text_of(slot[4])}` for `{text_of(slot[3])}`" for slot in places})
        where = f"lines {', '.join(lines[:-1])} and {lines[-1]}" if len(lines) > 1 else "this line"
        said = f"whole numbers make float64 of float32: write {' and '.join(names)} in {where}."
        yield change(function, LIKELY, int(lines[0]), said, places)
