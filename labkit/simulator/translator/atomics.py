"""Atomics: the dtypes that each works on, and the code of a call."""

import ast

from labkit.simulator.atomics import OPERATIONS, TAKING
from labkit.simulator.language import ATOMICS, commutes, explain_unknown
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Value


class Atomics(Variables):
    """`cuda.atomic.*`."""

    def atomic(self, node, name, result_used):
        if name not in ATOMICS:
            self.fail(node, explain_unknown(f"cuda.atomic.{name}", self.written(node.func)))
        signature, allowed = ATOMICS[name]
        count = len(signature.split(", "))
        if len(node.args) != count:
            self.fail(
                node, f"write `cuda.atomic.{name}({signature})`: it takes {count} arguments, not {len(node.args)}"
            )
        index_node, *values = node.args[1:] if "index" in signature else [ast.Constant(0), *node.args[1:]]
        subscript = ast.copy_location(ast.Subscript(node.args[0], index_node, ast.Store()), node)
        ast.fix_missing_locations(subscript)
        array, index = self.element(subscript)
        if array.type.ndim == 1 and isinstance(index_node, ast.Tuple):
            self.fail(
                index_node, f"numba takes a plain index here, without parentheses: `{self.written(index_node.elts[0])}`"
            )
        self.check_writable(node, array)
        kind = array.type.dtype
        if array.type.space == "local":
            self.fail(node, "an atomic on a thread's own local array has no meaning; use plain `+=`")
        if kind not in allowed:
            names = [str(k) for k in allowed]
            self.fail(
                node,
                f"`cuda.atomic.{name}` works on {', '.join(names[:-1])} and {names[-1]}, and "
                f"`{self.written(node.args[0])}` holds {kind}; make it an array of one of these",
            )
        *compare, value = [self.converted(self.scalar(a, "an atomic"), kind) for a in values]
        number = self.site(subscript, array, "atomic")
        if name in ("add", "sub") and isinstance(kind, types.Float):
            self.count_flops(node, kind, 1)
        self.flush_flops()
        self.pause(node, number, array, "" if result_used else commutes(name, kind))
        self.program.acts_on_atomics |= result_used
        if result_used and OPERATIONS[name] in TAKING:
            self.program.locks |= {(alternative.name, node.lineno) for alternative in array.type.each}
        code = (
            f"atomic(w, {number}, {array.code}, {self.mask}, {OPERATIONS[name]}, {value}, "
            f"{compare[0] if compare else None}, {result_used}, {', '.join(i.code for i in index)})"
        )
        if result_used:
            return self.temp(code, kind)
        self.emit(code)
        return Value("None", types.none)
