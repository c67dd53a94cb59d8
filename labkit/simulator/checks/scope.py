"""Values of a kernel's expressions in a launch, as far as they follow from its source, its grid and its arguments."""

import ast
import operator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from labkit.trace import ThreadId, Trace

OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
AXES = "xyz"


@dataclass(frozen=True)
class Scope:
    """A launch of a kernel, to evaluate integer expressions in; `names` are its scalars, `shapes` those of arrays."""

    tree: ast.FunctionDef
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    names: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def last_thread(self) -> ThreadId:
        bx, by, bz = self.grid
        x, y, z = self.block
        return ThreadId((bx - 1, by - 1, bz - 1), (x - 1, y - 1, z - 1))

    def value(self, node: ast.expr, thread: ThreadId | None = None) -> int | None:
        """Return the value of an expression, in a thread if it depends on that; None where it is not known."""
        try:
            return self._value(node, thread)
        except (RecursionError, ZeroDivisionError):
            return None

    def _value(self, node, thread):
        match node:
            case ast.Constant(int(value)):
                return value
            case ast.Name(name) if name in self._assigned:
                return self._assigned_value(name, thread)
            case ast.Name(name):
                return self.names.get(name)
            case ast.BinOp(left, sign, right) if type(sign) in OPERATIONS:
                sides = self._value(left, thread), self._value(right, thread)
                return None if None in sides else OPERATIONS[type(sign)](*sides)
        return self._known(ast.unparse(node), thread)

    def _assigned_value(self, name, thread):
        """Return the value of a variable that is assigned once; of several targets, it is one of a thread's indices."""
        targets = self._assigned[name]
        if len(targets) != 1 or targets[0] is None:
            return None
        axis, value = targets[0]
        if axis is None:
            return self._value(value, thread)
        return self._index(axis, thread) if ast.unparse(value) in ("cuda.grid(2)", "cuda.grid(3)") else None

    @cached_property
    def _assigned(self):
        """What is assigned to each variable: (number among the targets, value); None for other ways to set it."""
        found: dict[str, list] = {}
        names = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for statement in ast.walk(self.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    found.setdefault(name, []).append((None, value))
                case ast.Assign([ast.Tuple(targets)], value):
                    for axis, target in enumerate(targets):
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, []).append((axis, value))
        return {
            name: found.get(name, []) if names.count(name) == len(found.get(name, [])) else [None] for name in names
        }

    def _known(self, text, thread):
        if text == "cuda.grid(1)":
            return self._index(0, thread)
        if text == "cuda.gridsize(1)":
            return self.grid[0] * self.block[0]
        for axis, letter in enumerate(AXES):
            for name, values in self._positions(thread).items():
                if text == f"cuda.{name}.{letter}":
                    return values[axis]
        for name, shape in self.shapes.items():
            if text == f"{name}.size":
                return int(np.prod(shape, dtype=np.int64))
            if text == f"len({name})" and shape:
                return shape[0]
            for axis, length in enumerate(shape):
                if text == f"{name}.shape[{axis}]":
                    return length
        return None

    def _positions(self, thread):
        own = {"threadIdx": thread.thread, "blockIdx": thread.block} if thread else {}
        return {"blockDim": self.block, "gridDim": self.grid, **own}

    def _index(self, axis, thread):
        return thread and thread.block[axis] * self.block[axis] + thread.thread[axis]


def scope_of(trace: Trace) -> Scope:
    """Return the scope of a kernel that ran, as far as its trace tells."""
    tree = ast.parse(trace.source).body[0]
    ast.increment_lineno(tree, trace.first_line - 1)
    return Scope(tree, trace.grid, trace.block, shapes={array.name: array.shape for array in trace.arrays})
