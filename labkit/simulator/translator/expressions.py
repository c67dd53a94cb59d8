"""Expressions: literals, tuples, conditions and choices."""

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.host import DeviceArray
from labkit.simulator.limits import MAX_ENTRIES
from labkit.simulator.reading.syntax import contains, is_boolean, walk
from labkit.simulator.reading.trusted import Named, in_words
from labkit.simulator.seam import types
from labkit.simulator.translator.refused import MISPLACED, REFUSED
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Array, Maybe, NamedTuple, Tuple, Value, describe, is_tuple, items_of

# Nodes whose value numba's pruning of branches takes as computed at run time, even if it is constant.
COMPUTED_AT_RUN_TIME = ast.Call, ast.Subscript, ast.USub, ast.UAdd, ast.Invert


class Expressions(Variables):
    """Each `of_Node` returns the value of one kind of expression."""

    def expression(self, node) -> Value:
        """Return the value of an expression; a thread whose value is None ends by an exception, as numba has it."""
        value = self.expression_or_none(node)
        if not isinstance(value.type, Maybe):
            return value
        is_number, number = items_of(self.kept(value))
        yes, no = self.name("m"), self.name("m")
        self.flush_flops()
        self.emit(f"{yes}, {no} = split({self.mask}, {is_number.code})")
        with self.block(f"if {no} is not False:"):
            self.emit_raise(node, no, "TypeError", (f"expected {number.type}, got None",))
        return number

    def expression_not_none(self, node, what) -> Value:
        """Return the value of an expression where numba takes none that may be None; `what` says where."""
        value = self.expression_or_none(node)
        if isinstance(value.type, Maybe):
            self.fail(
                node,
                f"`{self.written(node)}` may be None, and numba takes no such value for {what}; where it is not None, "
                f"`{self.written(node)} + 0` is a number",
            )
        return value

    def expression_or_none(self, node) -> Value:
        """Return the value of an expression, which may be None in some lanes."""
        self.visit()
        handler = getattr(self, f"of_{type(node).__name__}", None)
        if handler is None:
            refusals = REFUSED | MISPLACED
            self.fail(node, refusals.get(type(node), f"`{self.written(node)}` does not work in a kernel"))
        return handler(node)

    def scalar(self, node, what) -> Value:
        """Return the value of an expression that must be a number; `what` needs it, for the message."""
        return self.number(node, self.expression(node), what)

    def numbers(self, node, what) -> Value:
        """Return the value of an expression that must be a number or a tuple of numbers."""
        value = self.expression(node)
        for item in items_of(value) if is_tuple(value.type) else [value]:
            self.number(node, item, what)
        return value

    def number(self, node, value, what) -> Value:
        """Return the value of an expression, which must be a number."""
        if not isinstance(value.type, types.Type) or value.type is types.none:
            if isinstance(value.type, Array):
                self.refuse_whole_array(node, value.type, f"{what} needs one number")
            self.fail(node, f"`{self.written(node)}` is {describe(value.type)}, but {what} needs a number")
        return value

    def compile_time_value(self, value, node) -> Value:
        """Return a Python value frozen into the kernel: a literal, a global, a closure variable."""
        if isinstance(value, (bool, np.bool_)):
            return Value(self.constant(np.bool_(value)), types.boolean, bool(value))
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                self.fail(node, f"{in_words(value)} does not fit into 64 bits; use smaller numbers, or floats")
            kind = types.int64 if value < 2**63 else types.uint64
            return Value(self.constant(numba_types.as_type(value, kind)), kind, value)
        if isinstance(value, float) and not isinstance(value, np.floating):
            return Value(self.constant(np.float64(value)), types.float64, value)
        if isinstance(value, complex) and not isinstance(value, np.complexfloating):
            return Value(self.constant(np.complex128(value)), types.complex128, value)
        if isinstance(value, np.number):
            if value.dtype.char in "gG":
                self.fail(node, f"a {value.dtype} is wider than the numbers of a GPU; convert it with `float64(...)`")
            return Value(self.constant(value), numba_types.type_of(value.dtype), value)
        if isinstance(value, Named):
            plain = self.compile_time_value(value.values, node)
            return plain and replace(plain, type=NamedTuple(plain.type.items, value.fields))
        if isinstance(value, tuple):
            if len(value) > MAX_ENTRIES:
                self.fail(node, f"a tuple of {len(value):,} entries is too long for a kernel; pass an array of them")
            items = [self.compile_time_value(v, node) for v in value]
            if None in items:
                return None
            code = f"({', '.join(i.code for i in items)}{',' if len(items) == 1 else ''})"
            return Value(code, Tuple(tuple(i.type for i in items)), value)
        if isinstance(value, str):
            return Value(repr(value), str, value)
        if value is None:
            return Value("None", types.none)
        if value is ...:
            self.fail(node, "`...` has no meaning inside a kernel; write the number that belongs here")
        if isinstance(value, np.ndarray):
            return self.constant_array(node, value)
        if isinstance(value, DeviceArray):
            return self.captured_array(node, value)
        return None

    def of_Constant(self, node):
        value = self.compile_time_value(node.value, node)
        if value is None:
            self.fail(node, f"`{self.written(node)}` has no meaning inside a kernel, which knows numbers alone")
        return value

    def of_JoinedStr(self, node):
        """Translate an f-string with nothing to fill in, which is plain text."""
        if not all(isinstance(part, ast.Constant) for part in node.values):
            self.fail(node, REFUSED[ast.JoinedStr])
        return self.compile_time_value("".join(part.value for part in node.values), node)

    def of_Tuple(self, node):
        return self.tuple_of(node, [self.expression(e) for e in node.elts])

    def condition(self, node) -> Value:
        """Return an expression used as true or false."""
        if isinstance(node, ast.BoolOp):
            return self.boolean(node)
        if isinstance(node, ast.Constant):
            return self.compile_time_value(bool(node.value), node)
        value = self.expression_not_none(node, "a condition")
        if value.type is types.none:
            return Value("np.False_", types.boolean)
        value = self.number(node, value, "a condition")
        if not is_boolean(node) and contains([node], *COMPUTED_AT_RUN_TIME):
            value = replace(value, static=MISSING)
        if value.type == types.boolean:
            return value
        if value.type == types.float16:
            self.no_truth(node)
        if value.static is not MISSING:
            return self.compile_time_value(bool(value.static), node)
        return Value(f"truth({value.code})", types.boolean)

    def of_BoolOp(self, node):
        """Translate `and` and `or`, which return one of their operands, as in Python."""
        if all(is_boolean(operand) for operand in node.values):
            return self.boolean(node)
        is_and = isinstance(node.op, ast.And)
        what = "`and`" if is_and else "`or`"
        result = self.scalar(node.values[0], what)
        for operand in node.values[1:]:
            if result.static is not MISSING:
                if bool(result.static) != is_and:
                    return result
                result = self.scalar(operand, what)
                continue
            if result.type == types.float16:
                self.no_truth(node)
            first = self.temp(result.code, result.type)
            yes, no, second = self.name("m"), self.name("m"), self.name()
            self.flush_flops()
            self.emit(f"{yes}, {no} = split({self.mask}, truth({first.code}))")
            self.emit(f"{second} = None")
            mask = yes if is_and else no
            with self.block(f"if {mask} is not False:"), self.with_mask(mask):
                value = self.scalar(operand, what)
                self.emit(f"{second} = {value.code}")
            kind = result.type if result.type == value.type else self.unified_type(result.type, value.type, node, what)
            kept = f"{first.code} if {no if is_and else yes} is not False else None"
            chosen = f"{second}, {kept}" if is_and else f"{kept}, {second}"
            result = self.temp(f"choose({yes}, {chosen}, {self.dtype(kind)})", kind)
        return result

    def boolean(self, node):
        """Translate `and` and `or` where only the truth of the result counts."""
        return self.chain_tests(
            isinstance(node.op, ast.And), [(part, partial(self.condition, part)) for part in node.values]
        )

    def chain_tests(self, is_and: bool, parts: list[tuple[ast.expr, Callable[[], Value]]]) -> Value:
        """Translate tests in turn, each only in the lanes for which those before leave the result open.

        A test is its expression, and a function that translates it.
        """
        (_, first_test), *later = parts
        result = first_test()
        for operand, test in later:
            if result.static is not MISSING:
                if bool(result.static) != is_and:
                    return result
                result = test()
                continue
            sign = "&" if is_and else "|"
            if self.never_fails(operand):
                result = Value(f"({result.code} {sign} {test().code})", types.boolean)
                continue
            first = self.temp(result.code, types.boolean)
            yes, no = self.name("m"), self.name("m")
            self.flush_flops()
            self.emit(f"{yes}, {no} = split({self.mask}, {first.code})")
            mask = yes if is_and else no
            second = self.name()
            self.emit(f"{second} = np.False_")
            with self.block(f"if {mask} is not False:"), self.with_mask(mask):
                self.emit(f"{second} = {test().code}")
            result = Value(f"({first.code} {sign} {second})", types.boolean)
        return result

    def never_fails(self, node) -> bool:
        """Return whether lanes may compute an expression that they skip on a GPU.

        They may if it has no access, call, division, or variable that is unassigned or may be None.
        """
        names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
        unset = names & (self.env.keys() | self.first_types.keys()) - self.assigned
        may_be_none = any(isinstance(self.env.get(name), Maybe) for name in names)
        risks = ast.Subscript, ast.Call, ast.Div, ast.FloorDiv, ast.Mod
        return not may_be_none and not unset and not contains([node], *risks)

    def of_IfExp(self, node):
        test = self.condition(node.test)
        if test.static is not MISSING:
            return self.expression(node.body if test.static else node.orelse)
        self.flush_flops()
        yes, no = self.name("m"), self.name("m")
        self.emit(f"{yes}, {no} = split({self.mask}, {test.code})")
        results = []
        for mask, part in ((yes, node.body), (no, node.orelse)):
            holder = self.name()
            self.emit(f"{holder} = None")
            with self.block(f"if {mask} is not False:"), self.with_mask(mask):
                value = self.numbers(part, "a choice")
                self.emit(f"{holder} = {value.code}")
            results.append(Value(holder, value.type))
        kind = results[0].type
        if results[1].type != kind:
            kind = self.unified_type(kind, results[1].type, node, "the value of this choice")
        dtypes = f"({''.join(self.dtype(k) + ', ' for k in kind.items)})" if is_tuple(kind) else self.dtype(kind)
        return self.temp(f"choose({yes}, {results[0].code}, {results[1].code}, {dtypes})", kind)
