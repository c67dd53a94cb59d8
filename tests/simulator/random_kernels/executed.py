"""Counts of what ran: each pair of a syntax node or function, and a dtype, whose code some lane came to.

The translator writes a call into the lanes' code beside each node that it translates; code in a branch or loop that
no lane enters does not run.
"""

import ast
from contextlib import contextmanager

from numba import types

from labkit.simulator import translate
from labkit.simulator.language import CONSTANTS, INTRINSICS, NO_EFFECT, POSITIONS
from labkit.simulator.translator.function import FunctionTranslator
from labkit.simulator.values import MISSING, Array, Fixed, Tuple

# The argument whose dtype counts; of the others the first does.
SECOND = ("shfl_", "all_sync", "any_sync", "eq_sync", "ballot_sync", "match_", "selp")


@contextmanager
def counting():
    """Translates kernels so that a launch leaves the pairs that it came to in the set that this yields."""
    kept = translate.FunctionTranslator
    ran = set()
    translate.FunctionTranslator = type("Counting", (Counting,), {"ran": ran})
    try:
        yield ran
    finally:
        translate.FunctionTranslator = kept


class Counting(FunctionTranslator):
    """A translator whose programs add to `ran`, the pairs that they come to."""

    ran: set

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.kinds = {}  # the type of each expression

    def note(self, what, *kinds):
        for kind in kinds:
            if isinstance(kind, types.Type):
                self.emit(f"{self.constant(self.ran.add)}(({what!r}, {str(kind)!r}))")

    def kind(self, node):
        return self.kinds.get(node)

    def expression_or_none(self, node):
        value = super().expression_or_none(node)
        self.kinds[node] = value.type
        if isinstance(node, ast.IfExp) and value.static is MISSING:
            self.note("IfExp", value.type)
        elif isinstance(node, ast.BoolOp) and value.static is MISSING:
            self.note(f"BoolOp {type(node.op).__name__}", value.type)
        elif isinstance(node, ast.UnaryOp) and value.static is MISSING:
            self.note(f"UnaryOp {type(node.op).__name__}", self.kind(node.operand))
        elif isinstance(node, ast.Compare) and value.static is MISSING:
            kinds = [self.kind(part) for part in (node.left, *node.comparators)]
            for op, left, right in zip(node.ops, kinds, kinds[1:]):
                if isinstance(right, Tuple):
                    self.note("Compare In" if isinstance(op, ast.In) else "Compare tuples", *right.items)
                elif left == right:
                    self.note(f"Compare {type(op).__name__}", left)
        elif isinstance(node, ast.Subscript) and isinstance(value.type, Array):
            self.note(f"slice {ast.unparse(node).removeprefix(ast.unparse(node.value))}", value.type.dtype)
        return value

    def of_Attribute(self, node):
        value = super().of_Attribute(node)
        path = self.dotted(node)
        if path in POSITIONS or path in CONSTANTS:
            self.note(path, value.type)
        return value

    def operation(self, node, left, right, op):
        value = super().operation(node, left, right, op)
        if left.type == right.type and value.static is MISSING:
            self.note(f"{type(node).__name__} {op}", left.type)
        return value

    # --- tuples ---

    def tuple_entry(self, node, value):
        entry = super().tuple_entry(node, value)
        if not isinstance(node.slice, ast.Constant):
            self.note("tuple entry", entry.type)
        return entry

    def tuple_sum(self, node, left, right):
        self.note("Tuple sum", *left.type.items, *right.type.items)
        return super().tuple_sum(node, left, right)

    # --- calls ---

    def cast(self, node, kind):
        value = super().cast(node, kind)
        self.note(f"{kind}()", self.kind(node.args[0]))
        return value

    def function_call(self, node, function):
        value = super().function_call(node, function)
        _, kinds = function.resolve(tuple(self.kind(a) for a in node.args))
        self.note(function.name, kinds[0])
        return value

    def atomic(self, node, name, result_used):
        value = super().atomic(node, name, result_used)
        array = self.kind(node.args[0])
        self.note(f"atomic.{name} {array.space}", array.dtype)
        return value

    def expression_call(self, node, result_used):
        value = super().expression_call(node, result_used)
        path = self.dotted(node.func)
        if path in NO_EFFECT:
            self.note(path, value.type)
        elif path in INTRINSICS:
            which = int(path.removeprefix("cuda.").startswith(SECOND))
            kind = self.kind(node.args[which]) if len(node.args) > which else value.type
            kind = kind.dtype if isinstance(kind, Array) else kind
            self.note(path, value.type if path in ("cuda.grid", "cuda.gridsize") else kind)
        return value

    def device_function(self, node, function, kinds):
        if any(isinstance(kind, Fixed) for kind in kinds):
            self.note("function as argument", *kinds)
        return super().device_function(node, function, kinds)

    # --- memory ---

    def reshape(self, node):
        value = super().reshape(node)
        self.note("reshape", value.type.dtype)
        return value

    def load(self, node, array, index):
        value = super().load(node, array, index)
        if isinstance(node, ast.Subscript):
            self.note_access("load", array)
            if isinstance(node.slice, ast.UnaryOp) or ast.unparse(node.slice).startswith("-"):
                self.note("negative index", array.type.dtype)
        return value

    def store(self, node, array, index, value, given):
        super().store(node, array, index, value, given)
        self.note_access("store", array)

    def note_access(self, how, array):
        space, dtype = array.type.space, array.type.dtype
        self.note(f"{how} {array.type.ndim}-D" if space == "global" else f"{space} array", dtype)

    def shared_array(self, node):
        value = super().shared_array(node)
        if self.expression(node.args[0]).static == 0:
            self.note("dynamic shared array", value.type.dtype)
        return value

    # --- statements ---

    def do_Assign(self, node):
        super().do_Assign(node)
        self.note_value(node.value, "Assign", "Tuple")

    def do_AnnAssign(self, node):
        super().do_AnnAssign(node)
        self.note_value(node.value, "AnnAssign", "Tuple")

    def do_AugAssign(self, node):
        super().do_AugAssign(node)
        if isinstance(node.target, ast.Subscript):
            self.note("AugAssign element", self.kind(node.target.value).dtype)

    def do_Return(self, node):
        super().do_Return(node)
        self.note_value(node.value, "Return", "Return Tuple")

    def note_value(self, node, of_one, of_several):
        kind = self.kind(node)
        if isinstance(kind, Tuple):
            self.note(of_several, *kind.items)
        else:
            self.note(of_one, kind)

    def do_If(self, node):
        super().do_If(node)
        self.note("If", self.kind(node.test))

    def loop(self, node, header, enter):
        def entered(looping, inner):
            runs = enter(looping, inner)
            if isinstance(node, ast.While):
                self.note("While", self.kind(node.test))
                return runs
            over = self.dotted(node.iter.func) if isinstance(node.iter, ast.Call) else None
            what = over or ("array" if isinstance(self.kind(node.iter), Array) else "tuple")
            targets = [n for n in ast.walk(node.target) if isinstance(n, ast.Name)]
            self.note(f"For {what}", *(self.env[n.id] for n in targets))
            return runs

        super().loop(node, header, entered)
