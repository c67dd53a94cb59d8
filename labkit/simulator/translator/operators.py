"""Operators, with numba's types and conversions."""

import ast
import operator
from functools import partial

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.language import OPERATORS, SIGNS
from labkit.simulator.numba_types import bfloat16
from labkit.simulator.seam import types
from labkit.simulator.translator.float64 import Float64Advice
from labkit.simulator.translator.names import is_rank
from labkit.simulator.translator.refused import REFUSED
from labkit.simulator.values import MISSING, Array, Maybe, Member, Value, common_type, describe, is_tuple, items_of


def _operators(kind) -> dict:
    """Return (function, sign) of the operators of a kind, by their node in Python's grammar."""
    return {node: (getattr(operator, name), SIGNS[node]) for name, node in OPERATORS.items() if issubclass(node, kind)}


UNARY = _operators(ast.unaryop)
BINARY = {node.__name__: entry for node, entry in _operators(ast.operator).items()}
COMPARE = {node.__name__: entry for node, entry in _operators(ast.cmpop).items()}
RELATIONS = {ast.Is: "identical", ast.IsNot: "identical", ast.In: "contained", ast.NotIn: "contained"}
# In-place operations that numba-cuda 0.30 types wrongly: it takes the quotient of two integers as an integer.
REFUSED_IN_PLACE = {("Div", kind) for kind in (types.boolean, *types.integer_domain)}
# Hardware FLOPs per operation of the source. A complex product is four products and two sums; a complex quotient takes
# three real quotients, three products and three sums (R. L. Smith, "Algorithm 116: Complex division", 1962).
REAL_FLOPS = dict.fromkeys(("Add", "Sub", "Mult", "Div"), 1)
COMPLEX_FLOPS = {"Add": 2, "Sub": 2, "Mult": 6, "Div": 9}
MAX_MULTIPLIED = 0x10000  # greatest exponent computed by products; larger ones call `pow`
COMPLEX = {types.complex64, types.complex128}
# Operations for which NumPy's operator has other rules than numba's: functions of `simulator.functions.arithmetic`.
NUMBA_FUNCTIONS = {
    ("Integer", "FloorDiv"): "floor_quotient",
    ("Integer", "Pow"): "integer_power",
    ("Float", "FloorDiv"): "float_quotient",
    ("Float", "Mod"): "float_remainder",
    ("Complex", "Pow"): "complex_power",
}


class Operators(Float64Advice):
    """The translator's part for arithmetic, signs and comparisons: `of_X` translates the syntax node `ast.X`.

    In the source that it writes, `w` is the warp set that runs.
    """

    def of_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.fail(node, REFUSED[ast.MatMult])
        left = self.expression(node.left)
        return self.binary(node, left, self.expression(node.right), type(node.op).__name__)

    def operator_function(self, node):
        """Translate `operator.add(a, b)`, which is `a + b`."""
        kind = OPERATORS[self.dotted(node.func).removeprefix("operator.")]
        count = 1 if issubclass(kind, ast.unaryop) else 2
        if len(node.args) != count:
            self.fail(node, f"`{self.written(node.func)}` takes {count} number{'s' * (count > 1)}")
        return self.expression(self.replacement_node(node, lambda: _written_out(kind(), node.args)))

    def binary(self, node, left, right, op):
        return self.with_inferred_type(node, self.operation(node, left, right, op))

    def operation(self, node, left, right, op):
        """Return `left op right`, computed at translation if both are known; `op` is a name such as "Add"."""
        if op == "Add" and is_tuple(left.type) and is_tuple(right.type):
            return self.tuple_sum(node, left, right)
        function, sign = BINARY[op]
        written = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        for side, part in zip((left, right), written):
            if isinstance(side.type, Array):
                self.refuse_whole_array(part, side.type, f"`{sign}` takes numbers")
            if not isinstance(side.type, types.Type):
                self.fail(node, f"`{sign}` needs numbers, and one side is {describe(side.type)}")
        typed = (left.type, right.type)
        if isinstance(node, ast.AugAssign) and all((op, kind) in REFUSED_IN_PLACE for kind in typed):
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
            kinds = describe(left.type), describe(right.type)
            if "None" in kinds:
                cure = "; a function without `return` gives None: let it return its result"
            self.fail(node, f"`{sign}` does not work between {kinds[0]} and {kinds[1]}{cure}")
        result, (a, b) = resolved
        if isinstance(result, types.Integer):  # NumPy would make float64 of int64 and uint64
            a = b = result
        fixed = left.static is not MISSING and right.static is not MISSING
        if fixed and op != "Pow" and result != bfloat16 and not self.may_be_zero(op, right, result):
            with np.errstate(all="ignore"):
                folded = function(numba_types.as_type(left.static, a), numba_types.as_type(right.static, b))
            return Value(self.constant(folded), result, folded)
        flops = COMPLEX_FLOPS if isinstance(result, types.Complex) else REAL_FLOPS
        if not isinstance(result, types.Integer) and op in flops:
            self.count_flops(node, result, flops[op])
        elif op == "Pow" and isinstance(result, types.Float) and isinstance(right.static, int):
            self.count_flops(node, result, _power_products(right.static))
        self.note_float64(node, left, right, result, sign)
        if op == "Div" and all(isinstance(kind, types.Integer) for kind in (left.type, right.type)):
            self.integer_quotients.add(node)
        has_integer_exponent = op == "Pow" and isinstance(b, types.Integer)
        a, b = self.converted(left, a), self.converted(right, b)
        if self.may_be_zero(op, right, result):
            b = self.temp(b, result).code
            self.emit(f"w.chunk.launch.check_divisor(w, {self.mask}, {b}, {sign!r}, {node.lineno}, {node.col_offset})")
        if result == bfloat16:
            return Value(f"to_bfloat16({a} {sign} {b})", result)
        family = "Integer" if isinstance(result, types.Integer) else "Complex" if result in COMPLEX else "Float"
        if has_integer_exponent and family == "Float":
            return Value(f"repeated_power({a}, {b})", result)
        function = NUMBA_FUNCTIONS.get((family, op))
        return Value(f"{function}({a}, {b})" if function else f"({a} {sign} {b})", result)

    def may_be_zero(self, op, right, result) -> bool:
        """Return whether to check for a zero divisor: integers and complex numbers need it, floats give infinity."""
        if isinstance(result, types.Complex):
            return op == "Div"
        return op in ("FloorDiv", "Mod") and isinstance(result, types.Integer) and right.static in (MISSING, 0)

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            test = self.condition(node.operand)
            if test.static is not MISSING:
                return self.compile_time_value(not test.static, node)
            return Value(f"logical_not({test.code})", types.boolean)
        value = self.scalar(node.operand, "this sign")
        function, sign = UNARY[type(node.op)]
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
        return self.with_inferred_type(node, Value(self.converted(signed, result), result))

    def of_Compare(self, node):
        """Translate `a < b < c`, which is `a < b and b < c`, with b computed once."""
        asks_for_none = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) or any(
            isinstance(side, ast.Constant) and side.value is None for side in (node.left, *node.comparators)
        )
        sides = [self.compared_side(node.left, asks_for_none)]

        def test(op, right):
            sides.append(self.compared_side(right, asks_for_none))
            return getattr(self, RELATIONS.get(type(op), "related"))(node, op, *sides[-2:])

        return self.chain_tests(
            True, [(right, partial(test, op, right)) for op, right in zip(node.ops, node.comparators)]
        )

    def compared_side(self, node, may_be_none):
        """Return (node, value) of one side of a comparison."""
        return node, self.expression_or_none(node) if may_be_none else self.expression(node)

    def related(self, node, op, *sides):
        """Translate `a < b` and similar comparisons."""
        kinds = [value.type for _, value in sides]
        equals = isinstance(op, ast.Eq | ast.NotEq)
        if equals and types.none in kinds:
            return self.identical(node, op, *sides)
        if equals and all(is_tuple(kind) or isinstance(kind, Member) for kind in kinds):
            return self.same_values(node, op, *sides)
        left, right = (self.number(part, value, "a comparison") for part, value in sides)
        function, sign = COMPARE[type(op).__name__]
        fixed = left.static is not MISSING and right.static is not MISSING
        # numba prunes by literals, globals and `x.ndim`, and takes `float32(0)`, `-N` and `math.pi` as computed
        if fixed and all(isinstance(part, ast.Constant | ast.Name) or is_rank(part) for part, _ in sides):
            return self.compile_time_value(bool(function(left.static, right.static)), node)
        resolved = numba_types.resolve(function, (left.type, right.type))
        if resolved is None or isinstance(resolved[1][0], types.Complex) and not equals:
            operand_types = f"{describe(left.type)} and {describe(right.type)}"
            self.fail(node, f"`{sign}` cannot compare {operand_types}; compare real numbers, such as `abs(...)`")
        a, b = left.type, right.type
        if not isinstance(a, types.Integer | types.Boolean) or not isinstance(b, types.Integer | types.Boolean):
            a, b = resolved[1]
        return Value(f"({self.converted(left, a)} {sign} {self.converted(right, b)})", types.boolean)

    def identical(self, node, op, *sides):
        """Translate `a is None`, which the types decide unless a may be None; members of an Enum are compared."""
        kinds = [value.type for _, value in sides]
        optional = [value for _, value in sides if isinstance(value.type, Maybe)]
        if types.none in kinds and optional:
            is_number, _ = items_of(self.kept(optional[0]))
            return self.negated_if(is_number.code, isinstance(op, ast.Is | ast.Eq))
        if types.none in kinds:
            return self.compile_time_value((kinds[0] is kinds[1]) == isinstance(op, ast.Is | ast.Eq), node)
        if not all(isinstance(kind, Member) for kind in kinds):
            self.fail(node, "`is` asks for None and for members of an Enum in a kernel; compare numbers with `==`")
        return self.same_values(node, op, *sides)

    def same_values(self, node, op, *sides):
        """Translate `==` and `!=` of tuples, value by value, and of members of an Enum."""
        (_, left), (_, right) = sides
        if isinstance(left.type, Member) and not left.type.may_be(right.type):
            self.fail(node, f"{describe(left.type)} is never {describe(right.type)}; compare members of one Enum")
        pairs = zip(*([(part, item) for item in items_of(self.kept(value))] for part, value in sides))
        parts = [self.related(node, ast.Eq(), *pair).code for pair in pairs]
        if len(left.type.items) != len(right.type.items):
            parts = ["np.False_"]
        return self.negated_if(f"({' & '.join(parts) or 'np.True_'})", isinstance(op, ast.NotEq | ast.IsNot))

    def contained(self, node, op, value, container):
        """Translate `a in (b, c)`."""
        part, container_value = container
        if not is_tuple(container_value.type):
            self.fail(
                node,
                f"`in` looks through a tuple in a kernel, not through {describe(container_value.type)}; write a loop",
            )
        if container_value.type.items and common_type(container_value.type.items) is None:
            self.fail(node, f"`{self.written(part)}` holds values of several types, and `in` needs one type")
        value = value[0], self.kept(value[1])
        parts = [
            self.related(node, ast.Eq(), value, (part, item)).code for item in items_of(self.kept(container_value))
        ]
        return self.negated_if(f"({' | '.join(parts) or 'np.False_'})", isinstance(op, ast.NotIn))

    def negated_if(self, code, negated):
        """Return a boolean, negated if `negated`."""
        return Value(f"logical_not({code})" if negated else code, types.boolean)


def _power_products(exponent) -> int:
    """Return the number of products, and the quotient of a negative one, in a power with a plain whole exponent."""
    size = abs(exponent)
    if not 0 < size <= MAX_MULTIPLIED:
        return 0
    return size.bit_length() - 1 + size.bit_count() - 1 + (exponent < 0)


def _written_out(operation, operands):
    """Return the syntax of an operation."""
    if isinstance(operation, ast.unaryop):
        return ast.UnaryOp(operation, *operands)
    if isinstance(operation, ast.cmpop):
        return ast.Compare(operands[0], [operation], operands[1:])
    return ast.BinOp(operands[0], operation, operands[1])
