"""Translation of one function, from its syntax tree to a Python function over lanes."""

import numpy as np

from labkit.simulator import atomics, collectives, lanes, memory, parted, pieces, raised, records, slices
from labkit.simulator.errors import KernelError
from labkit.simulator.functions import arithmetic, half
from labkit.simulator.limits import work_of
from labkit.simulator.seam import types
from labkit.simulator.translator.branches import Branches
from labkit.simulator.translator.calls import Calls
from labkit.simulator.translator.captured import Captured
from labkit.simulator.translator.elements import Elements
from labkit.simulator.translator.expressions import Expressions
from labkit.simulator.translator.extremes import Extremes
from labkit.simulator.translator.intrinsics import Intrinsics
from labkit.simulator.translator.iteration import Iterations
from labkit.simulator.translator.names import Names
from labkit.simulator.translator.operators import Operators
from labkit.simulator.translator.pieces import Pieces
from labkit.simulator.translator.raising import Raising
from labkit.simulator.translator.scalars import Scalars
from labkit.simulator.translator.statements import Statements
from labkit.simulator.translator.structures import Structures
from labkit.simulator.translator.tuples import Tuples
from labkit.simulator.translator.unpacking import Unpacking
from labkit.simulator.values import Maybe, Record, describe

# Functions that translated lines call, by module.
_RUNTIME_FUNCTIONS = {
    lanes: "split intersect union minus select choose lane_range trip_counts cast truth logical_not minimum maximum "
    "apply_function",
    memory: "load store elements unravel",
    atomics: "atomic",
    collectives: "shuffle vote ballot match_any match_all active_mask sync_warps",
    slices: "Slice view transpose reshape select_parts select_entry",
    records: "field",
    pieces: "part view_as bits_as",
    arithmetic: "floor_quotient float_quotient float_remainder integer_power repeated_power complex_power",
    raised: "end_raised",
    parted: "meet",
    half: "to_bfloat16 from_bits to_bits",
}

MAX_WALKS = 12  # over a function, until the types of its loops are stable


class FunctionTranslator(
    Statements, Branches, Iterations, Expressions, Names, Operators, Scalars, Extremes, Elements, Structures, Pieces,
    Tuples, Unpacking, Captured, Calls, Raising, Intrinsics,
):  # fmt: skip
    """Translates one function, for one tuple of argument types."""

    def run(self):
        """Translate and compile the function; return it, and the type of its result."""
        tree = self.source.tree
        arguments = self.parameters
        if len(arguments) != len(self.argument_types):
            self.fail(
                tree,
                f"`{tree.name}` takes {len(arguments)} arguments ({', '.join(arguments)}) "
                f"but was given {len(self.argument_types)}",
            )
        self.body(tree)
        if not self.is_kernel and self.returns_none_on_a_path():
            self.may_return_none = True
            self.body(tree)
        if self.program.watch:
            self.maybe_unassigned |= self.forms.keys() - set(arguments)
        sure = tuple(f"a_{name} =" for name in self.forms.keys() - self.maybe_unassigned)
        body = [line for line in self.lines if not line.lstrip().startswith(sure)]
        kind = self.result_type()
        name = f"lanes_of_{tree.name}"  # a kernel may be called `load`
        head = [f"def {name}(w, m0{''.join(', v_' + a for a in arguments)}):"]
        for storage, local in self.local_types.items():
            if storage not in {f"v_{a}" for a in arguments}:
                zero = f"{self.dtype(local)}.type(0)" if isinstance(local, types.Type) else "None"
                head.append(f"    {storage} = {zero}")
        if self.is_kernel:  # one record of an array of one
            head += [f"    v_{a} = (v_{a},)" for a, k in zip(arguments, self.argument_types) if isinstance(k, Record)]
        head += [f"    a_{variable} = False" for variable in sorted(self.maybe_unassigned)]
        head.append("    gone = False")
        if not self.is_kernel:
            nothing = f"(np.False_, {self.dtype(kind.items[1])}.type(0))" if self.may_return_none else "None"
            head += [f"    result = {nothing}", f"    w.tick({tree.lineno}, {work_of(body)})"]
        tail = [] if self.is_kernel else ["    return result"]
        if self.program.blocking:
            tail = ["    if False:", "        yield", *tail]
        text = "\n".join([*head, *body, *tail]) + "\n"
        self.program.text += text + "\n"
        scope = self.program.namespace
        scope["np"] = np
        for module, names in _RUNTIME_FUNCTIONS.items():
            scope.update({name: getattr(module, name) for name in names.split()})
        try:
            exec(compile(text, f"<lockstep {tree.name}>", "exec"), scope)
        except (SyntaxError, RecursionError, MemoryError):  # Python's own limits of nesting
            self.fail(tree, "this function is nested too deeply; split it into several, or its expressions into lines")
        if self.exits:
            self.program.raising.add(scope[name])
        return scope[name], kind

    def body(self, tree):
        """Translate the statements repeatedly, as numba infers types, until the types of all loops are stable."""
        before = self.program.variables
        for _ in range(MAX_WALKS):
            self.program.variables = {name: set(kinds) for name, kinds in before.items()}
            self.env = dict(zip(self.parameters, self.argument_types))
            self.assigned = set(self.parameters)
            self.masks, self.region, self.loops = {"function": "m0"}, "function", []
            self.lines, self.indent, self.reachable, self.unstable_loop = [], 1, True, None
            self.flops.clear()
            self.return_types.clear()
            self.local_types.clear()
            self.first_types.clear()
            try:
                self.statements(tree.body)
            except KernelError:
                if self.unstable_loop is None:
                    raise
            self.flush_flops()
            if self.unstable_loop is None:
                return
        self.fail(self.unstable_loop, "the types of this loop's variables do not settle; give each variable one type")

    def returns_none_on_a_path(self) -> bool:
        """Return whether the function returns a value on some paths and None on others."""
        kinds = [kind for kind in self.return_types if kind is not types.none]
        ends_without = self.reachable or types.none in self.return_types
        return any(isinstance(kind, Maybe) for kind in kinds) or (bool(kinds) and ends_without)

    def result_type(self):
        """Return the type that all returned values share."""
        kinds = [kind for kind in self.return_types if kind is not types.none]
        if not kinds:
            return types.none
        if self.may_return_none:
            kinds = [kind.items[1] if isinstance(kind, Maybe) else kind for kind in kinds]
        first = kinds[0]
        for kind in kinds[1:]:
            if kind != first:
                first = self.unified_type(first, kind, self.source.tree, "the returned value")
        if not self.may_return_none:
            return first
        if not isinstance(first, types.Number | types.Boolean):
            self.fail(
                self.source.tree,
                f"`{self.source.tree.name}` returns {describe(first)} on one path and nothing on another; return the "
                "same on every path",
            )
        return Maybe((types.boolean, first))
