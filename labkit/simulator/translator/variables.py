"""Variables: what they hold on each path, and the types that numba gives their versions."""

from dataclasses import replace

from numba import types

from labkit.simulator import numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.translator.emitter import Emitter
from labkit.simulator.values import Array, Conflict, Fixed, Tuple, describe, form_of


class Variables(Emitter):
    """Assigns, reads and merges variables."""

    def assign_name(self, name, value, node):
        if value.type is types.none:
            self.fail(node, f"the right-hand side has no value, so `{name}` cannot hold it")
        kind = value.type
        if isinstance(kind, Fixed):  # what no lane holds
            self.env[name] = kind
            return
        if not isinstance(kind, (types.Type, Array, Tuple)):
            self.fail(
                node,
                f"`{self.written(getattr(node, 'value', node))}` is {describe(kind)}, but a kernel variable "
                "holds a number or an array",
            )
        self.env[name] = kind
        self.first.setdefault(name, kind)
        if self.is_kernel and name in self.parameters:
            self.program.rebound.setdefault(name, node.lineno)
        if name not in self.assigned:
            self.assigned.add(name)
            self.emit(f"a_{name} = union(a_{name}, {self.mask})")
        place = self.place(name, kind)
        self.local_types.setdefault(place, kind)
        self.note_type(name, kind)
        # a thread that is followed keeps what it assigned, whether or not any code reads it
        home = "m0" if self.program.watch else self.masks.get(self.homes.home(name), "m0")
        if home == self.mask:
            self.emit(f"{place} = {value.code}")
            return
        new = value.code if value.code.isidentifier() else self.temp(value.code, kind).code
        blend = "select" if isinstance(kind, types.Type) else "select_parts"
        self.emit(f"{place} = {new} if {self.mask} is {home} else {blend}({self.mask}, {new}, {place})")

    def place(self, name, kind) -> str:
        """The variable of the translated code: `v_x`, and others beside it where x is a number here, an array there."""
        forms = self.forms.setdefault(name, [])
        if form_of(kind) not in forms:
            forms.append(form_of(kind))
        return f"v{forms.index(form_of(kind)) or ''}_{name}"

    def note_type(self, name, kind):
        """Keeps the types that a variable has where it is assigned or read: those of numba's SSA versions."""
        if isinstance(kind, types.Number | types.Boolean):
            self.program.variables.setdefault(name, set()).add(kind)

    def held(self, name, kind) -> str:
        """What a variable holds, with its type on this path: lanes on another path may hold a wider one."""
        place = self.place(name, kind)
        of_one_type = self.homes.stores(name) == 1 and not self.unrolls
        return place if of_one_type else self.retyped(place, kind)

    def retyped(self, code, kind) -> str:
        if isinstance(kind, Tuple):
            return f"({''.join(self.retyped(f'{code}[{i}]', k) + ', ' for i, k in enumerate(kind.items))})"
        return f"cast({code}, {self.dtype(kind)})" if isinstance(kind, types.Number | types.Boolean) else code

    def merge(self, envs, node):
        """The environment after several paths meet."""
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
                    merged[name] = self.joined(name, merged[name], kind, node)
        return merged

    def joined(self, name, first, second, node):
        """The type of a variable that has the one or the other; a Conflict, to be told if it is read, where none is."""
        if isinstance(first, Conflict) or isinstance(second, Conflict):
            return first if isinstance(first, Conflict) else second
        try:
            return self.unified(first, second, node, f"`{name}`")
        except KernelError as error:
            return Conflict(error.reason)

    def unified(self, first, second, node, what):
        if isinstance(first, types.Type) and isinstance(second, types.Type):
            kind = numba_types.unify(first, second)
            if kind is not None:
                return kind
        if isinstance(first, Tuple) and first.may_be(second):
            return replace(
                first, items=tuple(self.unified(a, b, node, what) for a, b in zip(first.items, second.items))
            )
        if isinstance(first, Array) and isinstance(second, Array) and first.same_form(second):
            return first.joined(second)
        self.fail(
            node, f"{what} is {describe(first)} on one path and {describe(second)} on another; make them the same"
        )

    def emit_watch(self, line):
        shown = {name: kind for name, kind in self.env.items() if isinstance(kind, types.Number | types.Boolean)}
        lanes = {name: "None" if name in self.assigned else f"a_{name}" for name in shown}
        values = ", ".join(f"{n!r}: ({self.held(n, kind)}, {lanes[n]})" for n, kind in shown.items())
        self.emit(f"w.chunk.launch.watch(w, {self.mask}, {line}, {{{values}}})")

    def emit_watch_as(self, mask, line):
        kept, self.masks[self.region] = self.mask, mask
        self.emit_watch(line)
        self.masks[self.region] = kept
