"""Variables: their values on each path, and the types that numba gives their versions."""

import ast
from dataclasses import replace
from types import ModuleType

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.reading.outside import language_path
from labkit.simulator.reading.syntax import contains
from labkit.simulator.seam import types
from labkit.simulator.translator.emitter import Emitter
from labkit.simulator.values import Array, Conflict, Fixed, Tuple, describe, form_of


class Variables(Emitter):
    """Assigns, reads and merges variables."""

    def assign_name(self, name, value, node):
        """Assign a value to a variable in the lanes of the mask; the others keep theirs."""
        if value.type is types.none and contains([getattr(node, "value", node)], ast.Call):
            self.fail(node, f"the right-hand side has no value, so `{name}` cannot hold it")
        kind = Fixed(None) if value.type is types.none else value.type
        if isinstance(kind, Fixed):  # lanes do not hold it
            self.env[name] = kind
            return
        if not isinstance(kind, (types.Type, Array, Tuple)):
            self.fail(
                node,
                f"`{self.written(getattr(node, 'value', node))}` is {describe(kind)}, but a kernel variable "
                "holds a number or an array",
            )
        self.env[name] = kind
        self.first_types.setdefault(name, kind)
        if self.is_kernel and name in self.parameters:
            self.program.rebound.setdefault(name, node.lineno)
        if name not in self.assigned:
            self.assigned.add(name)
            self.emit(f"a_{name} = union(a_{name}, {self.mask})")
        storage = self.storage_name(name, kind)
        self.local_types.setdefault(storage, kind)
        self.note_type(name, kind)
        # an inspected thread keeps its values, whether or not any code reads them
        home = "m0" if self.program.watch else self.masks.get(self.homes.home(name), "m0")
        if home == self.mask:
            self.emit(f"{storage} = {value.code}")
            return
        new = value.code if value.code.isidentifier() else self.temp(value.code, kind).code
        blend = "select" if isinstance(kind, types.Type) else "select_parts"
        self.emit(f"{storage} = {new} if {self.mask} is {home} else {blend}({self.mask}, {new}, {storage})")

    def storage_name(self, name, kind) -> str:
        """Return the variable of the translated code: `v_x`, or another where x is a number here and an array there."""
        forms = self.forms.setdefault(name, [])
        if form_of(kind) not in forms:
            forms.append(form_of(kind))
        return f"v{forms.index(form_of(kind)) or ''}_{name}"

    def note_type(self, name, kind):
        """Keep the types of a variable where it is assigned or read: those of numba's SSA versions."""
        if isinstance(kind, types.Number | types.Boolean):
            self.program.variables.setdefault(name, set()).add(kind)

    def current_value(self, name, kind) -> str:
        """Return a variable's value, of its type on this path: lanes on another path may hold a wider one."""
        storage = self.storage_name(name, kind)
        of_one_type = self.homes.stores(name) == 1 and not self.has_unrolled
        return storage if of_one_type else self.convert_type(storage, kind)

    def convert_type(self, code, kind) -> str:
        """Return the code of a value, cast to a type; arrays stay as they are."""
        if isinstance(kind, Tuple):
            return f"({''.join(self.convert_type(f'{code}[{i}]', k) + ', ' for i, k in enumerate(kind.items))})"
        return f"cast({code}, {self.dtype(kind)})" if isinstance(kind, types.Number | types.Boolean) else code

    def merge(self, envs, node):
        """Return the environment after several paths meet."""
        merged = dict(envs[0])
        for env in envs[1:]:
            for name, kind in env.items():
                if name not in merged:
                    merged[name] = kind
                elif merged[name] != kind:
                    if name in self.program.rebound and isinstance(
                        self.argument_types[self.parameters.index(name)], Array
                    ):
                        raise KernelError(
                            f"`{name} = ...` gives the name `{name}` a new meaning and leaves the array as it was; "
                            f"write into an element, `{name}[i] = ...`",
                            self.program.rebound[name],
                        )
                    merged[name] = self.joined_type(name, merged[name], kind, node)
        return merged

    def joined_type(self, name, first, second, node):
        """Return the type of a variable with either type; a Conflict, reported at a read, if they do not unify."""
        if isinstance(first, Conflict) or isinstance(second, Conflict):
            return first if isinstance(first, Conflict) else second
        try:
            return self.unified_type(first, second, node, f"`{name}`")
        except KernelError as error:
            return Conflict(error.reason)

    def unified_type(self, first, second, node, what):
        """Return the type that two types unify to; refuse them if there is none."""
        if isinstance(first, types.Type) and isinstance(second, types.Type) and types.none not in (first, second):
            kind = numba_types.unify(first, second)
            if kind is not None:
                return kind
        if isinstance(first, Tuple) and first.may_be(second):
            return replace(
                first, items=tuple(self.unified_type(a, b, node, what) for a, b in zip(first.items, second.items))
            )
        if isinstance(first, Array) and isinstance(second, Array) and first.same_form(second):
            return first.joined(second)
        self.fail(
            node, f"{what} is {describe(first)} on one path and {describe(second)} on another; make them the same"
        )

    def emit_watch(self, line):
        """Write the line that keeps the inspected thread's variables (`Launch.watch`)."""
        shown = {name: kind for name, kind in self.env.items() if isinstance(kind, types.Number | types.Boolean)}
        lanes = {name: "None" if name in self.assigned else f"a_{name}" for name in shown}
        values = ", ".join(f"{n!r}: ({self.current_value(n, kind)}, {lanes[n]})" for n, kind in shown.items())
        self.emit(f"w.chunk.launch.watch(w, {self.mask}, {line}, {{{values}}})")

    def emit_watch_as(self, mask, line):
        """Write the same line for the lanes of another mask."""
        own_mask, self.masks[self.region] = self.mask, mask
        self.emit_watch(line)
        self.masks[self.region] = own_mask

    def float32_name(self) -> str:
        """Return how this function can write float32: a global name of it, else of a module that has it."""
        names = {name: value for name, value in dict.items(self.function.__globals__) if not self.homes.stores(name)}
        casts = [name for name, value in names.items() if value is types.float32 or value is np.float32]
        modules = [name for name, value in names.items() if type(value) is ModuleType]
        paths = {language_path(names[name]): f"{name}.float32" for name in modules[::-1]}
        casts += [paths[path] for path in ("np", "numba", "cuda") if path in paths]
        return "float32" if "float32" in casts or not casts else casts[0]
