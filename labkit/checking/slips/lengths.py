"""Changes of bounds where two lengths differ: as many queries as keys, and the like."""

import ast
from itertools import permutations

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, POSSIBLE, text_of
from labkit.checking.slips.several import assignments, change, expression, name_pairs, names_of

_ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE


def add_difference(function):
    """Add by how much one length is above another that was read with it, where nothing uses their difference yet."""
    loaded = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    differences = {text_of(n) for n in ast.walk(function) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub)}
    groups = list(_lengths_read_together(function))
    for rank, longer, shorter in [(rank, *pair) for rank, names in groups for pair in permutations(names, 2)]:
        unused = next((name for name in (longer, shorter) if name not in loaded and name != "_"), None)
        if any(text.endswith(f"{one} - {other}") for text in differences for one, other in _both(longer, shorter)):
            continue
        for slot in _places(function) if unused else _compared(function):
            if not isinstance(slot[3], ast.BinOp | ast.Name) or {longer, shorter} & names_of(slot[3]):
                continue
            new = expression(f"{text_of(slot[3])} + {longer} - {shorter}")
            said = f"`{unused}` is never used, and the two lengths may differ: write `{text_of(new)}`."
            if not unused:
                said = f"`{longer}` and `{shorter}` may differ, by which this begins or ends: write `{text_of(new)}`."
            yield change(function, LIKELY if unused else rank, slot[3].lineno, said, [(*slot, new)])


def _both(one, other):
    return (one, other), (other, one)


def _lengths_read_together(function):
    """Yield the names of lengths that one line sets, behind the rank: two arrays' lengths more likely have to fit."""
    for line in assignments(function):
        if isinstance(line.targets[0], ast.Tuple) and text_of(line.value).endswith(".shape"):
            yield POSSIBLE, [n.id for n in line.targets[0].elts if isinstance(n, ast.Name)]
            continue
        found = [(name, text_of(value)) for name, value in name_pairs(line) if ".shape[" in text_of(value)]
        arrays = {text.partition(".")[0] for _, text in found}
        yield HINTED if len(found) == len(arrays) == 2 else POSSIBLE, [name for name, _ in found]


def _places(function):
    """Yield where a value is set, compared, or ends a loop."""
    for slot in slots(function):
        owner, field = slot[0], slot[1]
        is_end = field == "args" and text_of(owner.func) in ("min", "max", "range")
        if is_end or isinstance(owner, ast.Compare) or (field == "value" and isinstance(owner, ast.Assign)):
            yield slot


def _compared(function):
    """Yield what is the larger or the smaller in a comparison of indices."""
    for slot in slots(function):
        if isinstance(slot[0], ast.Compare) and slot[1] == "comparators" and isinstance(slot[0].ops[0], _ORDERS):
            yield slot
