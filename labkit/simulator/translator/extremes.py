"""`min`, `max` and `sum`, of numbers, tuples, arrays and ranges."""

import ast

from labkit.simulator import numba_types
from labkit.simulator.functions.reductions import greatest, least, total, total_of_mixed
from labkit.simulator.seam import types
from labkit.simulator.translator.refused import NO_PYTHON_FUNCTION
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array, Range, Value, common_type, describe, is_tuple, items_of

GPU_MIN_MAX_TYPES = {types.float32, types.float64}


class Extremes(Variables):
    """Python's functions that take several numbers, or something that holds several."""

    def extreme(self, node):
        """Translate `min` and `max`: of two floats the GPU's own, which ignores NaN; else compared as in Python."""
        path = self.dotted(node.func)
        if len(node.args) == 1:
            whole = self.collection(node, self.expression(node.args[0]))
            if not is_tuple(whole.type):
                kind = whole.type.dtype if isinstance(whole.type, Array) else whole.type.items[0]
                zero = Value(f"{self.dtype(kind)}.type(0)", kind)
                return self.call_function(node, (least if path == "min" else greatest).py_func, [whole, zero])
            parts, values = node.args * len(whole.type.items), items_of(self.kept(whole))
            values = [self.number(*pair, f"`{path}`") for pair in zip(parts, values)]
        else:
            values = [self.scalar(a, f"`{path}`") for a in node.args]
        if not values:
            self.fail(node, f"`{path}` compares two or more numbers, or those of a tuple or an array")
        kind = numba_types.unify(*(v.type for v in values))
        if kind is None or isinstance(kind, types.Complex):
            operand_types = " and ".join(describe(v.type) for v in values)
            self.fail(node, f"`{path}` cannot compare {operand_types}; convert them to one real type first")
        function = f"{path}imum"
        if len(node.args) == 2 and GPU_MIN_MAX_TYPES.issuperset(v.type for v in values):
            function = f"np.f{path}"
        code = self.converted(values[0], kind)
        for value in values[1:]:
            code = f"{function}({code}, {self.converted(value, kind)})"
        return Value(code, kind)

    def total(self, node):
        """Translate `sum(values)` and `sum(values, start)`."""
        if len(node.args) not in (1, 2) or isinstance(node.args[0], ast.GeneratorExp | ast.ListComp):
            self.fail(node, NO_PYTHON_FUNCTION.format(name="sum"))
        whole = self.collection(node, self.expression(node.args[0]))
        start = self.scalar(node.args[1], "`sum`") if len(node.args) == 2 else self.compile_time_value(0, node)
        if is_tuple(whole.type) and not whole.type.items:
            return start
        mixed = is_tuple(whole.type) and common_type(whole.type.items) is None
        return self.call_function(node, (total_of_mixed if mixed else total).py_func, [whole, start])

    def collection(self, node, value) -> Value:
        """Return the value of an expression that holds several numbers."""
        is_row = isinstance(value.type, Array) and value.type.ndim == 1
        if not (is_row or is_tuple(value.type) or isinstance(value.type, Range)):
            self.fail(
                node,
                f"`{self.written(node.func)}` of one value takes a tuple, a range or an array of one dimension, and "
                f"`{self.written(node.args[0])}` is {describe(value.type)}; write the loop over `range` yourself",
            )
        return self.kept(value)
