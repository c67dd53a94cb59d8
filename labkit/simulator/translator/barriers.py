"""Barriers of a block."""

from numba import types

from labkit.simulator.translator.values import Value, describe
from labkit.simulator.translator.variables import Variables


class Barriers(Variables):
    """`cuda.syncthreads`, and its forms that count a condition."""

    def syncthreads(self, node):
        self.arguments(node, 0, "`cuda.syncthreads`")
        self.wait(node)
        return Value("None", types.none)

    def syncthreads_counting(self, node):
        name = self.dotted(node.func).removeprefix("cuda.")
        (predicate,) = self.arguments(node, 1, f"`{self.written(node.func)}`")
        if not isinstance(predicate.type, types.Integer):
            self.fail(
                node.args[0],
                f"numba takes a whole number in `{self.written(node.func)}`, and `{self.written(node.args[0])}` is "
                f"{describe(predicate.type)}; write `int32({self.written(node.args[0])})`",
            )
        self.emit(f"w.chunk.say(w, {self.mask}, truth({self.converted(predicate, types.int32)}))")
        self.wait(node)
        return self.temp(f"w.chunk.heard(w, {name!r})", types.int32)

    def wait(self, node):
        self.flush_flops()
        self.emit(f"if w.chunk.barrier(w, {self.mask}, {node.lineno}): yield ({node.lineno}, {self.mask}, ())")
