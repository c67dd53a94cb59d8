"""Changes of the bits that an exclusive or changes, in all places alike: where elements are stored, and loaded."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, Change, quote
from labkit.checking.slips.several import change

_OTHERS = (ast.Mult, 4), (ast.Mult, 2), (ast.Mult, 8), (ast.FloorDiv, 2), (ast.FloorDiv, 4), (ast.FloorDiv, 8)


def change_bits(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the changes of a function."""
    yield from _swizzle_alike(function)
    groups = defaultdict(list)
    for slot in slots(function):
        if isinstance(slot[3], ast.BinOp) and isinstance(slot[3].op, ast.BitXor):
            groups[ast.unparse(slot[3].right)].append(slot)
    together = [[slot for found in groups.values() for slot in found]] if len(groups) > 1 else []
    for found in [*groups.values(), *together]:
        for sign, number in _OTHERS:
            places = [(*slot, _moved(slot[3], sign, number)) for slot in found]
            first, new = found[0][3], places[0][4]
            said = f"{quote(first)} changes bits in which lanes of a warp differ already, so some share a bank: "
            said += f"write {quote(new)}"
            others = [f"{quote(slot[4])} in line {slot[3].lineno}" for slot in places[1:]]
            yield change(function, LIKELY, first.lineno, ", and ".join([said, *others[:1]]) + ".", places)


def _moved(node, sign, number):
    right = node.right
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mult | ast.FloorDiv):
        right = right.left if isinstance(right.right, ast.Constant) else right
    return ast.BinOp(node.left, node.op, ast.BinOp(right, sign(), ast.Constant(number)))


def _swizzle_alike(function):
    """Find an element where an exclusive or put it: load it from there, or store it where it is loaded from."""
    found = [slot for slot in slots(function) if isinstance(slot[3], ast.Subscript)]
    pairs = [(slot, slot[3].slice.elts) for slot in found if isinstance(slot[3].slice, ast.Tuple)]
    for (_, _, _, one), there in pairs:
        for slot, here in pairs:
            is_same = ast.unparse(one.value) == ast.unparse(slot[3].value) and len(there) == len(here) == 2
            if not is_same or type(one.ctx) is type(slot[3].ctx) or "^" in ast.unparse(slot[3]):
                continue
            match there:
                case [ast.Name(row), ast.BinOp(_, ast.BitXor(), mask)] if isinstance(here[0], ast.Name):
                    text = re.sub(rf"\b{row}\b", here[0].id, ast.unparse(mask))
                case _:
                    continue
            moved = ast.BinOp(here[1], ast.BitXor(), ast.parse(text, mode="eval").body)
            new = ast.Subscript(slot[3].value, ast.Tuple([here[0], moved], ast.Load()), slot[3].ctx)
            said = (
                f"line {one.lineno} has {quote(one)}, and this another place for the same element: write {quote(new)}."
            )
            yield change(function, HINTED, slot[3].lineno, said, [(*slot, new)])
