"""Names and attributes: variables, frozen globals, `cuda.threadIdx.x`, `math.pi`, `x.shape`."""

import ast
import builtins
from types import ModuleType

import numpy as np
from numba import types

from labkit.simulator.language import (
    BUILTINS,
    CALLS,
    CONSTANTS,
    FUNCTIONS,
    MODULES,
    POSITIONS,
    PREFIXES,
    nearest,
    why_unknown,
)
from labkit.simulator.translator.refused import ARRAY_METHODS
from labkit.simulator.translator.values import MISSING, Array, Tuple, Value, describe
from labkit.simulator.translator.variables import Variables


class Names(Variables):
    """What a name stands for."""

    def of_Name(self, node):
        name = node.id
        if name in self.env:
            if name not in self.assigned:
                self.unsure.add(name)
                self.emit(f"w.chunk.launch.check_assigned(w, minus({self.mask}, a_{name}), {name!r}, {node.lineno})")
            self.note_type(name, self.env[name])
            return Value(self.held(name), self.env[name])
        if self.homes.stores(name):
            self.fail(
                node,
                f"`{name}` is read before anything was assigned to it; give it a value first, such as `{name} = "
                "float32(0)`",
            )
        value = self.global_value(node)
        if value is None:
            self.fail(node, f"`{name}` cannot be used as a value in a kernel")
        return value

    def global_value(self, node):
        name = node.id
        if name not in self.names:
            if name in BUILTINS or hasattr(builtins, name):
                self.fail(node, f"`{name}` is not part of the kernel language here")
            self.fail(
                node,
                f"the name `{name}` is not defined{nearest(name)}; assign it before use, or pass it as an argument",
            )
        value = self.names[name]
        known = self.known(value, node)
        if known is not None:
            self.program.frozen[self.function, name] = value
        return known

    def dotted(self, node) -> str | None:
        """The name in the kernel language that an expression stands for, such as `cuda.shared.array`."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name) or node.id in self.env:
            return None
        value = self.names.get(node.id, MISSING)
        if value is MISSING:
            return node.id if node.id in BUILTINS else None
        if isinstance(value, ModuleType):
            return MODULES.get(value.__name__)
        if isinstance(value, types.Type):
            return f"numba.{'boolean' if value == types.boolean else value.name}"
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{np.dtype(value).name}" if value is not np.bool_ else "np.bool_"
        module = getattr(value, "__module__", None)
        if module in MODULES and isinstance(getattr(value, "__name__", None), str):
            return f"{MODULES[module]}.{value.__name__}"
        if value in (min, max, abs, round, len, range, print, float, int, bool, pow):
            return value.__name__
        return None

    def of_Attribute(self, node):
        path = self.dotted(node)
        if path in POSITIONS:
            kind, code = POSITIONS[path]
            return Value(code, kind)
        if path in CONSTANTS:
            return self.known(CONSTANTS[path], node)
        if path is not None:
            if path in CALLS or path in FUNCTIONS:
                self.fail(node, f"`{self.written(node)}` is a function: call it with parentheses")
            if path in PREFIXES and path.startswith("cuda."):
                self.fail(node, f"`{self.written(node)}` is not complete; write for instance `{self.written(node)}.x`")
            self.fail(node, why_unknown(path, self.written(node)))
        if isinstance(node.value, ast.Name) and isinstance(self.names.get(node.value.id), ModuleType):
            self.fail(
                node,
                f"the module `{node.value.id}` does not work in a kernel; compute `{self.written(node)}` outside "
                "and pass it as an argument",
            )
        base = self.expression(node.value)
        if isinstance(base.type, Array):
            rank = base.type.ndim
            if node.attr == "shape":
                return Value(f"{base.code}.shape_values", Tuple((types.int64,) * rank))
            if node.attr == "size":
                return Value(f"{base.code}.size_value", types.int64)
            if node.attr == "ndim":
                return self.known(rank, node)
            name = self.written(node.value)
            if node.attr in ARRAY_METHODS:
                self.fail(node, ARRAY_METHODS[node.attr].format(name=name))
            self.fail(
                node, f"an array in a kernel has `shape`, `size` and `ndim`, not `{node.attr}`; loop over its elements"
            )
        if node.attr in ("astype", "item"):
            self.fail(
                node,
                f"`{self.written(node.value)}` is a number already: convert it with `float32(...)` or `int32(...)`",
            )
        self.fail(node, f"`{self.written(node.value)}` is {describe(base.type)} and has no `{node.attr}` in a kernel")
