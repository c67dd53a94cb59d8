"""Names and attributes: variables, frozen globals, `cuda.threadIdx.x`, `math.pi`, `x.shape`."""

import ast
import builtins
from types import ModuleType

import numpy as np

from labkit.simulator import language, numba_types
from labkit.simulator.host import DeviceArray
from labkit.simulator.instruction import instruction_of
from labkit.simulator.reading.outside import language_path, value_outside
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import GRID_GROUP, MISSING, Array, Conflict, Fixed, Value

MODULES_AND_TYPES = {*language.CASTS, *language.MODULES.values()}


class Names(Variables):
    """Resolves names and attributes."""

    def of_Name(self, node):
        name = node.id
        if isinstance(self.env.get(name), Conflict):
            self.fail(node, self.env[name].message)
        if isinstance(self.env.get(name), Fixed):
            return self.fixed(node)
        if name in self.env or name in self.first_types:
            return self.variable(node)
        if self.homes.stores(name):
            self.fail(
                node,
                f"`{name}` is read before anything was assigned to it; give it a value first, such as `{name} = "
                f"{self.float32_name()}(0)`",
            )
        value = self.global_value(node)
        if value is None:
            self.fail(node, f"`{name}` cannot be used as a value in a kernel")
        return value

    def variable(self, node) -> Value:
        """Return a variable's value; one not assigned on this path may be from an earlier iteration of a loop."""
        name = node.id
        if name not in self.env:
            self.assigned_elsewhere.add(name)
        kind = self.env.get(name, self.first_types.get(name))
        if name not in self.assigned:
            self.maybe_unassigned.add(name)
            missing, position = f"minus({self.mask}, a_{name})", f"{node.lineno}, {node.col_offset}"
            self.emit(
                f"w.chunk.launch.check_assigned(w, {missing}, {name!r}, {self.storage_name(name, kind)}, {position})"
            )
        self.note_type(name, kind)
        return Value(self.current_value(name, kind), kind)

    def global_value(self, node):
        name = node.id
        if name not in self.names:
            if name in language.BUILTINS or hasattr(builtins, name):
                self.fail(node, f"`{name}` is not part of the kernel language here")
            assign = f"{language.suggest_name(name)}; assign it before use, or pass it as an argument"
            self.fail(node, f"the name `{name}` is not defined{language.suggest_import(name) or assign}")
        value = self.names[name]
        known = self.compile_time_value(value, node)
        if known is not None:
            self.program.frozen[self.function, name] = value
        return known

    def fixed(self, node) -> Value:
        """Return an argument of a device function that was fixed when the function was compiled."""
        kind = self.env[node.id]
        return (self.compile_time_value(kind.value, node) if not kind.path else None) or Value("None", kind)

    def name_outside_kernel(self, name):
        """Return the value of a name before the kernel runs: a global, or a fixed argument; else MISSING."""
        if name in self.env:
            kind = self.env[name]
            return kind.value if isinstance(kind, Fixed) else MISSING
        return self.names.get(name, MISSING)

    def literal(self, node):
        """Return what numba takes as a literal: a number, a name for one, a tuple of these or its entry; else MISSING.

        A tuple holds MISSING in place of anything else (`is_known`).
        """
        match node:
            case ast.Constant(value):
                return value
            case ast.IfExp(ast.Constant(test), yes, no):  # Python's compiler drops the other branch
                return self.literal(yes if test else no)
            case ast.Name(name):
                return self.literals.get(name, self.name_outside_kernel(name))
            case ast.Tuple(parts):
                return tuple(map(self.literal, parts))
            case ast.Subscript(whole, index):
                entries, number = self.literal(whole), self.literal(index)
                if isinstance(entries, tuple) and isinstance(number, int) and -len(entries) <= number < len(entries):
                    return entries[number]
            case ast.Attribute() if is_rank(node):
                return self.expression(node).static
        return MISSING

    def value_outside_kernel(self, node):
        """Return as `bound`, for a name or an attribute of a module; None where nothing is known."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.env:
            kind = self.env.get(node.id) if isinstance(node, ast.Name) else None
            return kind.value if isinstance(kind, Fixed) else None
        return value_outside(node, self.names)

    def dotted(self, node) -> str | None:
        """Return the name of an expression in the kernel language, such as `cuda.shared.array`."""
        if isinstance(node, ast.Attribute):
            kind = self.dtype_named(node)
            if kind is not None:
                return language_path(kind)
            base = self.dotted(node.value)
            if base in language.CASTS and node.attr == "type":
                return base
            path = f"{base}.{node.attr}"
            if base is not None and path in language.KNOWN | language.PREFIXES:
                return path
            own_path = language_path(self.value_outside_kernel(node))
            is_used = base is None or path in language.SUBMODULES or own_path in MODULES_AND_TYPES
            return own_path if is_used else path
        if isinstance(node, ast.Call) and self.dotted(node.func) == "cuda.cg.this_grid":
            self.this_grid(node)
            return GRID_GROUP.path
        if not isinstance(node, ast.Name):
            return None
        kind = self.env.get(node.id)
        if isinstance(kind, Fixed) and kind.path:
            return kind.path
        value = self.name_outside_kernel(node.id)
        if value is MISSING:
            return node.id if node.id in language.BUILTINS and node.id not in self.env else None
        return language_path(value)

    def dtype_named(self, node):
        """Return the numba type of `x.dtype`, where x is the name of an array; else None."""
        if not (isinstance(node, ast.Attribute) and node.attr == "dtype" and isinstance(node.value, ast.Name)):
            return None
        kind = self.env.get(node.value.id)
        if isinstance(kind, Array):
            return kind.dtype
        outside = self.name_outside_kernel(node.value.id)
        return numba_types.type_of(outside.dtype) if isinstance(outside, np.ndarray | DeviceArray) else None

    def of_Attribute(self, node):
        path = self.dotted(node)
        if path in language.CASTS and self.dtype_named(node):
            return Value("None", Fixed(path, path))
        if path in language.POSITIONS:
            kind, code = language.POSITIONS[path]
            return Value(code, kind)
        if path in language.CONSTANTS:
            return self.compile_time_value(language.CONSTANTS[path], node)
        if path is not None:
            if path in language.CALLS or path in language.FUNCTIONS or instruction_of(self.value_outside_kernel(node)):
                self.fail(node, f"`{self.written(node)}` is a function: call it with parentheses")
            if path in language.PREFIXES and path.startswith("cuda."):
                self.fail(node, f"`{self.written(node)}` is not complete; write for instance `{self.written(node)}.x`")
            if path in language.CASTS:
                self.fail(node, f"`{self.written(node)}` is a type, not a value: convert a number with parentheses")
            self.fail(node, language.explain_unknown(path, self.written(node)))
        value = self.value_outside_kernel(node)
        if value is not None:
            known = self.compile_time_value(value, node)
            return known or self.fail(node, f"`{self.written(node)}` cannot be used as a value in a kernel")
        if isinstance(self.value_outside_kernel(node.value), ModuleType):
            self.fail(node, f"the module `{self.written(node.value)}` has no `{node.attr}` for a kernel")
        member = self.enum_member(node)
        return member or self.attribute(node, self.expression(node.value))


def is_rank(node) -> bool:
    """Return whether the expression is `x.ndim`, which numba knows at compile time."""
    return isinstance(node, ast.Attribute) and node.attr == "ndim"
