"""Calls of scalar functions: casts, `math`, `cuda.libdevice` and similar; loads and stores with a cache hint."""

import ast

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.functions.bits import SELECTED
from labkit.simulator.language import FUNCTIONS
from labkit.simulator.numba_types import bfloat16
from labkit.simulator.reading.trusted import Named
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Array, Tuple, Value, describe

# What numba has of NumPy's limits of a type.
LIMITS = {
    "np.iinfo": (types.Integer, ("min", "max", "bits")),
    "np.finfo": (
        types.Float,
        tuple("eps epsneg iexp machep max maxexp min minexp negep nexp nmant precision resolution tiny bits".split()),
    ),
}
NEVER_NONE = {"bool", "float", "complex"}  # that numba compiles for no argument that may be None
BYPASSES_L1 = {"cuda.ldcg", "cuda.ldcv"}  # cache hints that bypass L1 (PTX ISA, "Cache Operators")


class Scalars(Variables):
    """Functions of numbers, typed by the tables in `labkit.simulator.functions`."""

    def converted(self, value, kind) -> str:
        """Return the code of a value, converted to a type."""
        if value.type == kind:
            return value.code
        if kind == bfloat16:
            return f"to_bfloat16({value.code})"
        if value.static is not MISSING:
            return self.constant(numba_types.as_type(value.static, kind))
        code = value.code
        if value.type == bfloat16 and kind in (types.int8, types.uint8):  # stops at the ends of the range
            code = f"np.clip({code}, {kind.minval}, {kind.maxval})"
        return f"cast({code}, {self.dtype(kind)})"

    def with_inferred_type(self, node, value) -> Value:
        """Return the result of an operation or a call, of the type that numba's inference gives it.

        The type only widens from walk to walk: what was uint64 and becomes int64 ends as float64.
        """
        if not isinstance(value.type, types.Number | types.Boolean):
            return value
        known = self.result_types.setdefault(self.copy_of(node), value.type)
        if known == value.type:
            return value
        kind = self.unified_type(known, value.type, node, f"`{self.written(node)}`")
        self.result_types[self.copy_of(node)] = kind
        return Value(self.converted(value, kind), kind, value.static)

    def stored_code(self, node, value, kind) -> str:
        """Return the code of a value as an array of this type holds it."""
        if isinstance(value.type, types.Complex) and not isinstance(kind, types.Complex):
            self.fail(node, f"an element of type {kind} cannot hold a complex number; store its `.real`")
        code = self.converted(value, kind)
        return f"to_bits({code})" if kind == bfloat16 else code

    def cast(self, node, kind):
        """Translate `float32(x)` and similar casts."""
        what = f"`{self.written(node.func)}`"
        if len(node.args) == 1 and self.dotted(node.func) != "int":
            value = self.number(node.args[0], self.expression_not_none(node.args[0], what), what)
        else:
            (value,) = self.number_arguments(node, 1, what)
        if isinstance(value.type, types.Complex) and not isinstance(kind, types.Complex | types.Boolean):
            self.fail(
                node,
                f"`{self.written(node.args[0])}` is complex and does not fit into {describe(kind)}; take its `.real`, "
                "its `.imag` or its `abs`",
            )
        if kind == types.boolean and value.type == types.float16:
            self.no_truth(node.args[0])
        if value.static is not MISSING and kind != bfloat16:
            static = numba_types.as_type(value.static, kind)
            return Value(self.constant(static), kind, static)
        if kind == types.boolean:
            return Value(f"truth({value.code})", kind)
        if isinstance(kind, types.Integer):
            self.note_quotient(node.args[0], value)
        return Value(self.converted(value, kind), kind)

    def no_truth(self, node):
        self.fail(node, f"`{self.written(node)}` is a float16, which is neither true nor false on a GPU; write `!= 0`")

    def function_call(self, node, function):
        """Translate a call of a function in the tables, such as `math.sqrt(x)`."""
        what = f"`{self.written(node.func)}`"
        if function.name in NEVER_NONE:
            values = [self.expression_not_none(a, what) for a in node.args]
        else:
            values = [self.expression(a) for a in node.args]
        if function.name.startswith("np.") and values and isinstance(values[-1].type, Array):
            return self.elementwise(node, function, values)
        if function.name == "float" and len(values) == 1 and values[0].type is str:
            return self.number_in(node, values[0].static)
        if function.name == "int" and len(values) == 1:
            self.note_quotient(node.args[0], values[0])
        return self.apply_scalar_function(node, function, [self.number(a, v, what) for a, v in zip(node.args, values)])

    def number_in(self, node, text) -> Value:
        """Translate `float("inf")`."""
        try:
            return self.compile_time_value(float(text), node)
        except ValueError:
            self.fail(node, f"`{self.written(node)}` has no number in its text; write the number itself")

    def elementwise(self, node, function, values):
        """Translate `np.sin(x, out)`: the function of each element, written into an array of the same shape."""
        *inputs, out = values
        kinds = tuple(v.type.dtype if isinstance(v.type, Array) else v.type for v in values)
        if not inputs or function.resolve(kinds):  # as it would be of numbers, without an array for the result
            array_node, kind = next((n, v.type) for n, v in zip(node.args, values) if isinstance(v.type, Array))
            self.refuse_whole_array(array_node, kind, f"`{self.written(node.func)}` needs one number")
        for part, value in zip(node.args, inputs):
            if isinstance(value.type, Array) and value.type.ndim != out.type.ndim:
                self.fail(part, f"`{self.written(part)}` and `{self.written(node.args[-1])}` need the same shape")
        with self.each_element(node, out) as index:
            arguments = [
                self.load(part, value, index) if isinstance(value.type, Array) else value
                for part, value in zip(node.args, inputs)
            ]
            self.store(node.args[-1], out, index, self.apply_scalar_function(node, function, arguments), node)
        return out

    def apply_scalar_function(self, node, function, values) -> Value:
        """Return the function of these numbers."""
        resolved = function.resolve(tuple(v.type for v in values))
        if resolved is None:
            codes = ", ".join(describe(v.type) for v in values) or "nothing"
            self.fail(node, f"`{self.written(node.func)}` does not take {codes}")
        result, kinds = resolved
        items = tuple(result.types) if isinstance(result, types.BaseTuple) else (result,)
        dtypes = [self.dtype(kind) for kind in items]
        if function.flops:
            self.count_flops(node, items[0], function.flops)
        codes = "".join(f", {self.converted(v, k)}" for v, k in zip(values, kinds))
        if isinstance(result, types.BaseTuple):
            return self.temp(
                f"apply_function({self.constant(function.run)}, ({', '.join(dtypes)},){codes})", Tuple(items)
            )
        return Value(f"apply_function({self.constant(function.run)}, {dtypes[0]}{codes})", result)

    def power(self, node):
        if len(node.args) != 2:
            self.fail(node, "`pow` takes two numbers, a base and an exponent")
        return self.expression(self.replacement_node(node, lambda: ast.BinOp(node.args[0], ast.Pow(), node.args[1])))

    def select_value(self, node):
        """Translate `cuda.selp(test, a, b)`: a where the test holds, else b; both sides are computed."""
        test, first, second = self.number_arguments(node, 3, "`cuda.selp`")
        if test.type != types.boolean:
            self.fail(node, f"`cuda.selp` takes a comparison first, not {describe(test.type)}")
        if first.type != second.type or first.type.name not in SELECTED:
            self.fail(
                node,
                f"`cuda.selp` chooses between two numbers of one type of at least 16 bits, not {describe(first.type)} "
                f"and {describe(second.type)}; convert them first",
            )
        return self.temp(f"choose({test.code}, {first.code}, {second.code}, {self.dtype(first.type)})", first.type)

    def type_limits(self, node):
        """Translate `np.iinfo(dtype)` and `np.finfo(dtype)`: numbers by name."""
        path = self.dotted(node.func)
        named = len(node.args) == 1 and not isinstance(node.args[0], ast.Constant)
        kind = self.element_type(node.args[0]) if named else None
        of_type, fields = LIMITS[path]
        if not isinstance(kind, of_type) or kind == bfloat16:
            self.fail(node, f"`{self.written(node.func)}` takes one dtype of {of_type.__name__.lower()}s here")
        limits = (np.iinfo if path == "np.iinfo" else np.finfo)(numba_types.dtype_of(kind))
        return self.compile_time_value(Named(tuple(getattr(limits, name) for name in fields), fields), node)

    # --- parts of numbers ---

    def number_part(self, base, name) -> Value | None:
        """Return `z.real` and `z.imag`; None for other names and for other values than numbers."""
        if name not in ("real", "imag") or not isinstance(base.type, types.Number):
            return None
        if isinstance(base.type, types.Complex):
            return Value(f"{base.code}.{name}", base.type.underlying_float)
        return base if name == "real" else Value(f"{self.dtype(base.type)}.type(0)", base.type)

    def bit_count(self, node):
        """Translate `n.bit_count()`, which is `cuda.popc(n)`."""
        value = self.expression(node.func.value)
        if not isinstance(value.type, types.Integer) or node.args:
            self.fail(node, f"`{self.written(node.func)}` counts the ones of an integer, not of {describe(value.type)}")
        return self.apply_scalar_function(node, FUNCTIONS["cuda.popc"], [value])

    def conjugate(self, node):
        base = self.expression(node.func.value)
        if not isinstance(base.type, types.Number) or node.args:
            self.fail(node, f"`{self.written(node.func)}` does not work on {describe(base.type)}")
        return Value(f"np.conjugate({base.code})", base.type) if isinstance(base.type, types.Complex) else base

    # --- cache hints ---

    def hinted_element(self, node, count):
        """Return the subscript, array and indices that `cuda.ldcg(array, index)` and similar calls name."""
        written = f"`{self.written(node.func)}`"
        if len(node.args) != count:
            self.fail(node, f"{written} takes an array, an index{' and a value' * (count == 3)}")
        subscript = ast.copy_location(ast.Subscript(node.args[0], node.args[1], ast.Load()), node)
        array, index = self.element(ast.fix_missing_locations(subscript))
        if array.type.space != "global":
            self.fail(node, f"{written} works on global memory alone, and this is a {array.type.space} array")
        if not isinstance(array.type.dtype, types.Integer | types.Float):
            self.fail(node, f"{written} works on arrays of integers and floats, not of {describe(array.type.dtype)}")
        return subscript, array, index

    def hinted_load(self, node):
        subscript, array, index = self.hinted_element(node, 2)
        value = self.load(subscript, array, index)
        if self.dotted(node.func) in BYPASSES_L1:
            position = (node.lineno, node.col_offset, "load")
            sites = self.program.sites.items()
            self.program.past_l1 |= {n for site, n in sites if (site.line, site.column, site.kind) == position}
        return value

    def hinted_store(self, node):
        subscript, array, index = self.hinted_element(node, 3)
        value = self.scalar(node.args[2], f"`{self.written(node.func)}`")
        self.store(subscript, array, index, value, node.args[2])
        return Value("None", types.none)
