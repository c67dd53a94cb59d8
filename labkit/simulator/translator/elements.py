"""Elements of arrays: indices, loads and stores, and the site that counts each."""

import ast

import numpy as np
from numba import types

from labkit.simulator.language import CALLS, FUNCTIONS
from labkit.simulator.translator.refused import REFUSED
from labkit.simulator.translator.values import MISSING, Array, Tuple, Value, describe, element_of
from labkit.simulator.translator.variables import Variables
from labkit.trace import Site


class Elements(Variables):
    """Subscripts, read and written."""

    def element(self, node):
        """The array and the index values of a subscript; `A[i][j]` is `A[i, j]`."""
        indices = []
        while isinstance(node, ast.Subscript):
            part = node.slice
            indices = [*(part.elts if isinstance(part, ast.Tuple) else [part]), *indices]
            node = node.value
        array = self.expression(node)
        name = self.written(node)
        if isinstance(array.type, Tuple):
            self.fail(node, f"`{name}` is a tuple and cannot be changed")
        if not isinstance(array.type, Array):
            self.fail(node, f"`{name}` is {describe(array.type)}, not an array, so it has no elements")
        if len(indices) == 1 and isinstance(indices[0], ast.Name):
            kind = self.env.get(indices[0].id)
            if isinstance(kind, Tuple):
                value = self.expression(indices[0])
                self.check_rank(node, array, len(kind.items))
                return array, [Value(f"{value.code}[{i}]", k) for i, k in enumerate(kind.items)]
        values = []
        for part in indices:
            if isinstance(part, ast.Slice):
                self.fail(part, REFUSED[ast.Slice])
            value = self.scalar(part, "an index")
            if not isinstance(value.type, (types.Integer, types.Boolean)):
                self.fail(
                    part,
                    f"an index must be a whole number, and `{self.written(part)}` is {describe(value.type)}; "
                    "use `//` instead of `/`, or `int(...)`",
                )
            values.append(value)
        self.check_rank(node, array, len(values))
        return array, values

    def check_rank(self, node, array, given):
        rank = array.type.ndim
        if given != rank:
            self.fail(
                node,
                f"`{self.written(node)}` has {rank} dimension{'s' * (rank > 1)}: give it {rank} "
                f"{'index' if rank == 1 else 'indices'}, not {given}, such as "
                f"`{element_of(self.written(node), array.type)}`",
            )

    def site(self, node, array, kind) -> int:
        name, space, dtype = array.type.name, array.type.space, str(array.type.dtype)
        if kind != "load":
            self.program.stored.add(name)
        site = Site(node.lineno, node.col_offset, name, kind, space, dtype, self.written(node))
        return self.program.sites.setdefault(site, len(self.program.sites))

    def load(self, node, array, index) -> Value:
        number = self.site(node, array, "load")
        return self.temp(
            f"load(w, {number}, {array.code}, {self.mask}, {', '.join(i.code for i in index)})", array.type.dtype
        )

    def store(self, node, array, index, value):
        if not isinstance(value.type, types.Type) or value.type is types.none:
            pick = ""
            if isinstance(value.type, Array):
                pick = f"; pick an element, `{element_of(value.code.removeprefix('v_'), value.type)}`"
            self.fail(
                node, f"an array element holds one number, and the right-hand side is {describe(value.type)}{pick}"
            )
        number = self.site(node, array, "store")
        code = self.converted(value, array.type.dtype)
        self.emit(f"store(w, {number}, {array.code}, {self.mask}, {code}, {', '.join(i.code for i in index)})")

    def of_Subscript(self, node):
        if isinstance(node.value, (ast.Name, ast.Attribute, ast.Call)):
            path = self.dotted(node.value)
            if path in CALLS or path in FUNCTIONS:
                self.fail(node, f"`{self.written(node.value)}` is a function: use parentheses, not brackets")
            if path in ("cuda.threadIdx", "cuda.blockIdx", "cuda.blockDim", "cuda.gridDim"):
                self.fail(node, f"write `{self.written(node.value)}.x`, `.y` or `.z` instead of an index")
            base = None if path else self.expression(node.value)
            if base is not None and isinstance(base.type, Tuple):
                position = self.expression(node.slice)
                if not isinstance(position.static, (int, np.integer)):
                    self.fail(
                        node, f"`{self.written(node.value)}` is a tuple: its index must be a plain number, such as 0"
                    )
                try:
                    kind = base.type.items[position.static]
                except IndexError:
                    self.fail(
                        node,
                        f"`{self.written(node.value)}` has {len(base.type.items)} entries; there is no number "
                        f"{position.static}",
                    )
                static = base.static[position.static] if base.static is not MISSING else MISSING
                return Value(f"{base.code}[{int(position.static)}]", kind, static)
        array, index = self.element(node)
        return self.load(node, array, index)
