"""Changes of which block an index belongs to: the tile of the other matrix, that of the block's rows or columns."""

import ast
from collections.abc import Iterator

from labkit.checking.mutants import slots
from labkit.checking.slips.change import LIKELY, POSSIBLE, Change, text_of
from labkit.checking.slips.several import assignments, change, expression, name_pairs

_OTHER = {"x": "y", "y": "x"}
_SIDES = {"x": "columns", "y": "rows"}


def take_other_block(function: ast.FunctionDef) -> Iterator[Change]:
    """Take, for an index along one axis, the block's place or the thread's along the other, in all of a line."""
    pairs = [pair for line in assignments(function) for pair in name_pairs(line)]
    threads = {axis: f"cuda.threadIdx.{axis}" for axis in "xy"}
    threads |= {text_of(value)[-1]: name for name, value in pairs if text_of(value) in threads.values()}
    for name, axis in _indices(function, pairs).items():
        for line in assignments(function):
            found = [slot for slot in slots(ast.Module([line], [])) if _reads(slot[3], name)]
            is_tile = isinstance(line.targets[0], ast.Subscript) and len(found) > 1
            for block, thread in ((_OTHER[axis], axis), (axis, _OTHER[axis])) if found else ():
                text = f"cuda.blockIdx.{block} * cuda.blockDim.{block} + {threads[thread]}"
                said = f"`{name}` is one of the block's {_SIDES[axis]}, by `cuda.blockIdx.{axis}`, and this line needs "
                said += f"one of its {_SIDES[block]}: "
                if block == axis:
                    said = f"`{name}` moves along with `cuda.threadIdx.{axis}`, and this line needs what moves with "
                    said += f"`cuda.threadIdx.{thread}`: "
                said += f"write `{text}` for `{name}`{' in index and guard' if is_tile else ''}."
                places = [(*slot, expression(text)) for slot in found]
                yield change(function, LIKELY if is_tile else POSSIBLE, line.lineno, said, places)


def _indices(function, pairs):
    """Return the names of a thread's index in the whole grid, with their axes."""
    found = {}
    for line in assignments(function):
        target = line.targets[0]
        if text_of(line.value) == "cuda.grid(2)" and isinstance(target, ast.Tuple):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            found |= dict(zip(names, "xy", strict=False))
    for name, value in pairs:
        axes = [axis for axis in "xy" if f"cuda.blockIdx.{axis}" in text_of(value)]
        if len(axes) == 1 and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            found.setdefault(name, axes[0])
    return found


def _reads(node, name):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == name
