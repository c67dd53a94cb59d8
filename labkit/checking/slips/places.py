"""Changes of places: where one line stores and another loads, and what a guard tests before an access."""

import ast
from itertools import combinations
from typing import Any

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, POSSIBLE, quote, text_of
from labkit.checking.slips.several import assignments, change, changed, names_of, slots_within

MOST_SUMS = 8


def change_places(function):
    """Yield the changes of a function."""
    yield from _place_alike(function)
    yield from _guard_what_is_accessed(function)
    yield from _exchange_bounds(function)
    yield from _keep_test(function)
    yield from _exchange_numbers(function)
    yield from _flatten_otherwise(function)


def _terms(node):
    """Return the terms of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _spreads(function):
    """Yield each sum with two of its terms: a name, and another name with the factor by which that one spreads."""
    sums: list[Any] = [node for node in ast.walk(function) if _is_sum(node)]
    inner = {id(side) for node in sums for side in (node.left, node.right)}
    for slot in slots(function):
        if not _is_sum(slot[3]) or id(slot[3]) in inner:
            continue
        terms = _terms(slot[3])
        for one in terms:
            for product in terms:
                match product:
                    case ast.BinOp(ast.Name(left), ast.Mult(), ast.Name(right)) if isinstance(one, ast.Name):
                        yield slot, terms, one, product, left, right
                        yield slot, terms, one, product, right, left


def _is_sum(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _place_alike(function):
    """Let lines spread two numbers over places alike: `y + a * rows` in one line, and not `y * count + a` in others.

    The lines above are followed, or those below, along all axes or along one.
    """
    found = list(_spreads(function))
    changes = []
    for here in found:
        for there in found:
            (slot, terms, one, product, name, factor), (_, _, one_there, _, name_there, factor_there) = here, there
            is_turned = (one.id, name) == (name_there, one_there.id)
            is_other = (one.id, name) == (one_there.id, name_there) and factor != factor_there
            if not (is_turned or is_other) or factor_there in (one.id, name) or factor in (one_there.id, name_there):
                continue
            new = [n for n in terms if n is not one and n is not product]
            spread = ast.BinOp(ast.Name(name_there, ast.Load()), ast.Mult(), ast.Name(factor_there, ast.Load()))
            other = _sum([*new, ast.Name(one_there.id, ast.Load()), spread])
            is_after = slot[3].lineno > there[0][3].lineno
            changes.append((is_after, {one.id, name}, there[0][3], (*slot, other)))
    for is_after in (True, False):
        places = {id(each[3][3]): each for each in changes if each[0] is is_after}
        if not 0 < len(places) <= MOST_SUMS:
            continue
        groups = [[*places.values()]]
        if len({frozenset(each[1]) for each in places.values()}) > 1:
            groups += [[e for e in places.values() if e[1] == names] for names in [each[1] for each in places.values()]]
        for group in groups:
            told = [f"{quote(node)} for {quote(old)} in line {old.lineno}" for _, _, _, (*_, old, node) in group]
            told = list(dict.fromkeys(told))
            place = group[0][2]
            said = f"line {place.lineno} takes {quote(place)}, which is another place: write {' and '.join(told[:3])}"
            said += ", and so on." if len(told) > 3 else "."
            yield change(function, HINTED, group[0][3][3].lineno, said, [each[3] for each in group])


def _sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = ast.BinOp(total, ast.Add(), term)
    return total


def _guard_what_is_accessed(function):
    """Let a guard test the index of the access behind it, in place of one that the access does not have."""
    for choice in [node for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp)]:
        body = choice.body if isinstance(choice.body, list) else [choice.body]
        accesses = [n for part in body for n in ast.walk(part) if isinstance(n, ast.Subscript)]
        indices = {text_of(index): (index, access) for access in accesses for index in _indices(access)}
        tests = [slot for slot in slots_within(choice, choice.test) if isinstance(slot[3], ast.Compare)]
        tested = {text_of(side) for *_, test in tests for side in (test.left, *test.comparators)}
        missing = {text: pair for text, pair in indices.items() if text not in tested}
        wrong = [
            (test, side)
            for *_, test in tests
            for side in _sides(test)
            if text_of(side[3]) not in indices and isinstance(side[3], ast.Name | ast.BinOp)
        ]
        pairs = []
        for test, side in wrong:
            for text, (index, access) in missing.items():
                if not isinstance(index, ast.Constant) and _shares(index, side[3], function):
                    pairs.append((test, side, text, index, access))
        alike = [pair for pair in pairs if names_of(pair[1][3]) & names_of(pair[3])]
        of_alike = {id(pair[1][3]) for pair in alike}
        pairs = alike + [pair for pair in pairs if id(pair[1][3]) not in of_alike]  # `top + row` for `top + y`
        for test, side, text, index, access in pairs:
            new = [(*side, index)]
            with changed(new):
                written = text_of(test)
            said = f"this tests {quote(side[3])}, but {quote(access)} has the index `{text}`: write `{written}`."
            yield change(function, HINTED, test.lineno, said, new)
            yield _access_what_is_tested(function, choice, side[3], text, access)
        both = _in_order(pairs)
        if len(both) == 2:
            new = [(*side, index) for _, side, _, index, _ in both]
            with changed(new):
                written = " and ".join(f"`{text_of(test)}`" for test, *_ in both)
            tested = " and ".join(quote(side[3]) for _, side, *_ in both)
            said = f"this tests {tested}, which are not the indices of {quote(both[0][4])}: write {written}."
            yield change(function, HINTED, choice.lineno, said, new)


def _access_what_is_tested(function, choice, side, text, access):
    """Access the index that the guard tests, wherever the lines behind it have another."""
    body = choice.body if isinstance(choice.body, list) else [choice.body]
    inside = {n for part in body for n in ast.walk(part) if isinstance(n, ast.Subscript)}
    found = [slot for slot in slots(function) if slot[3] in inside]
    indices = [slot for *_, each in found for slot in slots_within(each, each.slice) if text_of(slot[3]) == text]
    unique = {id(slot[3]): slot for slot in indices}
    said = f"line {choice.lineno} tests {quote(side)}, but {quote(access)} has the index `{text}`: "
    said += f"write {quote(side)} for `{text}` here."
    return change(function, LIKELY, access.lineno, said, [(*slot, side) for slot in unique.values()])


def _sides(test):
    """Return what a comparison compares, in the form of slots."""
    return [(test, "left", None, test.left), *((test, "comparators", i, s) for i, s in enumerate(test.comparators))]


def _in_order(pairs):
    """Take for each of two wrong sides the missing index that is at the same place in the order."""
    sides = list(dict.fromkeys(id(side[3]) for _, side, *_ in pairs))
    texts = list(dict.fromkeys(text for _, _, text, *_ in pairs))
    if len(sides) != 2 or len(texts) != 2:
        return []
    order = {*zip(sides, texts, strict=True)}
    return [pair for pair in pairs if (id(pair[1][3]), pair[2]) in order]


def _shares(index, side, function):
    """Tell whether an index and what a guard tests are both made, and not a length."""
    lengths = {
        n.id
        for line in assignments(function)
        if ".shape" in text_of(line.value)
        for n in ast.walk(line.targets[0])
        if isinstance(n, ast.Name)
    }
    names = {n.id for n in ast.walk(side) if isinstance(n, ast.Name)}
    return not names & lengths and bool(names) and ".shape" not in text_of(side) and text_of(index) != text_of(side)


def _indices(access):
    return access.slice.elts if isinstance(access.slice, ast.Tuple) else [access.slice]


def _exchange_bounds(function):
    """Exchange the bounds of two comparisons in one condition."""
    for choice in [node for node in ast.walk(function) if isinstance(node, ast.BoolOp)]:
        tests = [n for n in ast.walk(choice) if isinstance(n, ast.Compare)]
        for one, other in combinations(tests, 2):
            for i, bound in enumerate(one.comparators):
                for j, bound_there in enumerate(other.comparators):
                    if type(one.ops[i]) is not type(other.ops[j]) or text_of(bound) == text_of(bound_there):
                        continue
                    new = [(one, "comparators", i, bound, bound_there), (other, "comparators", j, bound_there, bound)]
                    said = f"the bounds {quote(bound)} and {quote(bound_there)} are exchanged in this condition: "
                    said += "write each in the place of the other."
                    yield change(function, POSSIBLE, choice.lineno, said, new)


def _keep_test(function):
    """Store 0 where an earlier line did, by its own condition."""
    nodes = list(ast.walk(function))
    for choice in nodes:
        match choice:
            case ast.If(test, [ast.Assign([ast.Subscript()])], [ast.Assign([ast.Subscript()], zero)]) if _is_zero(zero):
                pass
            case _:
                continue
        lines = {line.lineno for line in (choice, *choice.body, *choice.orelse)}
        for slot in list(slots(function)):
            match slot[3]:
                case ast.Assign([ast.Subscript()], value) as line if line.lineno not in lines and not _is_zero(value):
                    new = ast.Assign(line.targets, ast.IfExp(test, value, zero))
                    said = f"this must be 0 where {quote(test)} does not hold, as in line {choice.lineno}: "
                    said += f"add `if {text_of(test)} else {text_of(zero)}` to the value."
                    yield change(function, LIKELY, line.lineno, said, [(*slot, new)])


def _is_zero(node):
    return text_of(node) in ("0", "np.float32(0)", "0.0")


def _exchange_numbers(function):
    """Exchange two numbers that several lines hold, such as masks of the halves of a word."""
    found: dict[int, list] = {}
    for slot in slots(function):
        match slot:
            case (ast.Call() as call, _, _, ast.Constant(int(value))) if value > 32 and "float" not in text_of(call):
                found.setdefault(value, []).append(slot)
    for one, other in combinations([value for value, places in found.items()], 2):
        places = [(*slot, ast.Constant(other if slot[3].value == one else one)) for slot in found[one] + found[other]]
        lines = sorted({slot[3].lineno for slot in places})
        where = f"lines {lines[0]} to {lines[-1]}" if len(lines) > 1 else "this line"
        said = f"`{hex(one)}` and `{hex(other)}` are exchanged in {where}: write each in the place of the other."
        yield change(function, LIKELY, lines[0], said, places)


def _flatten_otherwise(function):
    """Count two indices of one number the other way: the one that counted by steps counts by 1."""
    factors = {factor: None for *_, factor in _spreads(function)}
    for slot, terms, one, _, name, factor in list(_spreads(function)):
        if slot[1] != "slice" or len(terms) != 2:
            continue
        for other in factors:
            new = ast.parse(f"{other} * {one.id} + {name}", mode="eval").body
            said = (
                f"{quote(slot[3])} counts by 1 in `{one.id}` and by `{factor}` in `{name}`, and the elements lie the "
            )
            said += f"other way: write {quote(new)}."
            if other not in (one.id, name):
                yield change(function, POSSIBLE, slot[3].lineno, said, [(*slot, new)])
