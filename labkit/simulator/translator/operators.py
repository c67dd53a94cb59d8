"""Operators, with the types and conversions that numba gives them."""

import ast
import operator

import numpy as np
from numba import types

from labkit.simulator import numba_types
from labkit.simulator.language import OPERATORS
from labkit.simulator.numba_types import bfloat16
from labkit.simulator.translator.control_flow import has
from labkit.simulator.translator.refused import REFUSED
from labkit.simulator.translator.values import MISSING, Array, Value, describe
from labkit.simulator.translator.variables import Variables
from labkit.trace import Finding

BINARY = {
    "Add": (operator.add, "+"),
    "Sub": (operator.sub, "-"),
    "Mult": (operator.mul, "*"),
    "Div": (operator.truediv, "/"),
    "FloorDiv": (operator.floordiv, "//"),
    "Mod": (operator.mod, "%"),
    "Pow": (operator.pow, "**"),
    "LShift": (operator.lshift, "<<"),
    "RShift": (operator.rshift, ">>"),
    "BitAnd": (operator.and_, "&"),
    "BitOr": (operator.or_, "|"),
    "BitXor": (operator.xor, "^"),
}
COMPARE = {
    "Lt": (operator.lt, "<"),
    "LtE": (operator.le, "<="),
    "Gt": (operator.gt, ">"),
    "GtE": (operator.ge, ">="),
    "Eq": (operator.eq, "=="),
    "NotEq": (operator.ne, "!="),
}
# What numba-cuda 0.30 gives a wrong type in place: it takes the quotient of two integers for an integer there.
NOT_IN_PLACE = {("Div", kind) for kind in (types.boolean, *types.integer_domain)}
# Floating-point operations of the hardware in one of the source; a complex product is four products and two sums.
REAL_FLOPS = dict.fromkeys(("Add", "Sub", "Mult", "Div"), 1)
COMPLEX_FLOPS = {"Add": 2, "Sub": 2, "Mult": 6}
COMPLEX = {types.complex64, types.complex128}
# Where NumPy's operator has other rules than numba's.
NUMBAS_RULES = {
    ("Integer", "FloorDiv"): "floor_quotient",
    ("Integer", "Pow"): "integer_power",
    ("Float", "FloorDiv"): "float_quotient",
    ("Float", "Mod"): "float_remainder",
    ("Complex", "Pow"): "complex_power",
}


class Operators(Variables):
    """Arithmetic, signs and comparisons."""

    def of_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.fail(node, REFUSED[ast.MatMult])
        left = self.expression(node.left)
        return self.binary(node, left, self.expression(node.right), type(node.op).__name__)

    def operator_function(self, node):
        """`operator.add(a, b)`, which is `a + b`."""
        kind = OPERATORS[self.dotted(node.func).removeprefix("operator.")]
        count = 1 if issubclass(kind, ast.unaryop) else 2
        if len(node.args) != count:
            self.fail(node, f"`{self.written(node.func)}` takes {count} number{'s' * (count > 1)}")
        return self.expression(self.rewritten(node, lambda: _written_out(kind(), node.args)))

    def binary(self, node, left, right, op):
        return self.settled(node, self.operation(node, left, right, op))

    def operation(self, node, left, right, op):
        function, sign = BINARY[op]
        written = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        for side, part in zip((left, right), written):
            if isinstance(side.type, Array):
                self.one_of(part, side.type, f"`{sign}` takes numbers")
            if not isinstance(side.type, types.Type):
                self.fail(node, f"`{sign}` needs numbers, and one side is {describe(side.type)}")
        typed = (left.type, right.type)
        if isinstance(node, ast.AugAssign) and all((op, kind) in NOT_IN_PLACE for kind in typed):
            target, divisor = map(self.written, written)
            self.fail(
                node,
                "numba-cuda takes what `/=` makes of whole numbers for a whole number, and compiles next to nothing "
                f"that uses it; write `{target} = {target} / {divisor}`, or `//=` for whole numbers",
            )
        if op == "Pow" and isinstance(right.static, int) and not isinstance(right.static, bool):
            typed = (left.type, types.literal(right.static))
        resolved = numba_types.resolve(function, typed)
        if resolved is None:
            cure = (
                "; a power is written `**`"
                if sign == "^"
                else "; convert one side first, for instance with `int32(...)`"
            )
            self.fail(node, f"`{sign}` does not work between {describe(left.type)} and {describe(right.type)}{cure}")
        result, (a, b) = resolved
        if isinstance(result, types.Integer):  # NumPy would make float64 of int64 and uint64
            a = b = result
        fixed = left.static is not MISSING and right.static is not MISSING
        if fixed and op != "Pow" and result != bfloat16 and not self.may_be_zero(op, right, result):
            with np.errstate(all="ignore"):
                folded = function(numba_types.as_type(left.static, a), numba_types.as_type(right.static, b))
            return Value(self.constant(folded), result, folded)
        flops = COMPLEX_FLOPS if isinstance(result, types.Complex) else REAL_FLOPS
        if not isinstance(result, types.Integer) and (op in flops or op == "Pow" and right.static == 2):
            self.count_flops(result, flops.get(op, 1))
        self.note_float64(node, left, right, result, sign)
        power_of_integer = op == "Pow" and isinstance(b, types.Integer)
        a, b = self.converted(left, a), self.converted(right, b)
        if self.may_be_zero(op, right, result):
            b = self.temp(b, result).code
            self.emit(f"w.chunk.launch.check_divisor(w, {self.mask}, {b}, {sign!r}, {node.lineno}, {node.col_offset})")
        if result == bfloat16:
            return Value(f"to_bfloat16({a} {sign} {b})", result)
        family = "Integer" if isinstance(result, types.Integer) else "Complex" if result in COMPLEX else "Float"
        if power_of_integer and family == "Float":
            return Value(f"repeated_power({a}, {b})", result)
        function = NUMBAS_RULES.get((family, op))
        return Value(f"{function}({a}, {b})" if function else f"({a} {sign} {b})", result)

    def may_be_zero(self, op, right, result) -> bool:
        """Does the operation divide by something that may be zero, without a float's infinity for an answer?"""
        if isinstance(result, types.Complex):
            return op == "Div"
        return op in ("FloorDiv", "Mod") and isinstance(result, types.Integer) and right.static in (MISSING, 0)

    def note_float64(self, node, left, right, result, sign):
        """float32 meets something wider: the whole expression becomes float64, at a fraction of the speed."""
        if result != types.float64 or types.float32 not in (left.type, right.type):
            return
        other = right if left.type == types.float32 else left
        if other.static is not MISSING:
            why = f"{other.static} is {other.type}; write `float32({other.static})`"
        elif isinstance(other.type, types.Integer):
            why = f"the other side is {other.type}; convert it with `float32(...)`"
        else:
            why = "the other side is float64; start it from `float32(0)`, or convert it with `float32(...)`"
        key = (node.lineno, "float64")
        self.program.advice.setdefault(
            key,
            Finding(
                "float64",
                "advice",
                f"Line {node.lineno}: `{sign}` here computes in float64, which is 2 to 64 times slower than "
                f"float32 on a GPU: {why}.",
                node.lineno,
                node.col_offset,
            ),
        )

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            test = self.condition(node.operand)
            if test.static is not MISSING:
                return self.known(not test.static, node)
            return Value(f"logical_not({test.code})", types.boolean)
        value = self.scalar(node.operand, "this sign")
        function, sign = {
            ast.USub: (operator.neg, "-"),
            ast.UAdd: (operator.pos, "+"),
            ast.Invert: (operator.invert, "~"),
        }[type(node.op)]
        if isinstance(value.static, int | float) and not isinstance(value.static, np.generic):
            return self.known(function(value.static), node)
        resolved = numba_types.resolve(function, (value.type,))
        if resolved is None:
            self.fail(node, f"`{sign}` does not work on {describe(value.type)}")
        result, (kind,) = resolved
        if kind == types.boolean:  # NumPy has no signs for it
            kind = result
        if value.static is not MISSING:
            with np.errstate(all="ignore"):
                folded = function(numba_types.as_type(value.static, kind)).astype(numba_types.dtype_of(result))
            return Value(self.constant(folded), result, folded)
        signed = Value(f"({sign}{self.converted(value, kind)})", kind)  # numba widens after the sign
        return self.settled(node, Value(self.converted(signed, result), result))

    def of_Compare(self, node):
        parts = []
        for op in node.ops:
            if type(op) in REFUSED:
                self.fail(node, REFUSED[type(op)])
        left = self.scalar(node.left, "a comparison")
        for op, right_node in zip(node.ops, node.comparators):
            function, sign = COMPARE[type(op).__name__]
            right = self.scalar(right_node, "a comparison")
            fixed = left.static is not MISSING and right.static is not MISSING
            # numba prunes by literals and globals, and takes `float32(0)` and `math.pi` as computed
            if fixed and len(node.ops) == 1 and not has([node], ast.Call, ast.Attribute):
                return self.known(bool(function(left.static, right.static)), node)
            resolved = numba_types.resolve(function, (left.type, right.type))
            if resolved is None or isinstance(resolved[1][0], types.Complex) and sign not in ("==", "!="):
                given = f"{describe(left.type)} and {describe(right.type)}"
                self.fail(node, f"`{sign}` cannot compare {given}; compare real numbers, such as `abs(...)`")
            a, b = left.type, right.type
            if not isinstance(a, types.Integer | types.Boolean) or not isinstance(b, types.Integer | types.Boolean):
                a, b = resolved[1]
            parts.append(f"({self.converted(left, a)} {sign} {self.converted(right, b)})")
            left = right
        return Value(f"({' & '.join(parts)})", types.boolean)


def _written_out(operation, operands):
    """The syntax of an operation."""
    if isinstance(operation, ast.unaryop):
        return ast.UnaryOp(operation, *operands)
    if isinstance(operation, ast.cmpop):
        return ast.Compare(operands[0], [operation], operands[1:])
    return ast.BinOp(operands[0], operation, operands[1])
