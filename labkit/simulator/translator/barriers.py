"""Barriers of a block and of the whole grid, and fences."""

import numpy as np

from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import GRID_GROUP, Value, describe


class Barriers(Variables):
    """`cuda.syncthreads` and its forms with a vote, `cuda.cg.this_grid().sync()`, `cuda.threadfence`."""

    def syncthreads(self, node):
        self.number_arguments(node, 0, "`cuda.syncthreads`")
        self.wait(node)
        return Value("None", types.none)

    def syncthreads_counting(self, node):
        """Translate `syncthreads_count`, `syncthreads_and` and `syncthreads_or`."""
        name = self.dotted(node.func).removeprefix("cuda.")
        (predicate,) = self.number_arguments(node, 1, f"`{self.written(node.func)}`")
        if not isinstance(predicate.type, types.Integer):
            self.fail(
                node.args[0],
                f"numba takes a whole number in `{self.written(node.func)}`, and `{self.written(node.args[0])}` is "
                f"{describe(predicate.type)}; write `int32({self.written(node.args[0])})`",
            )
        self.emit(f"w.chunk.count_votes(w, {self.mask}, truth({self.converted(predicate, types.int32)}))")
        self.wait(node)
        return self.temp(f"w.chunk.vote_result(w, {name!r})", types.int32)

    def threadfence(self, node):
        self.number_arguments(node, 0, f"`{self.written(node.func)}`")
        self.emit(f"w.chunk.launch.fence(w, {self.mask})")
        return Value("None", types.none)

    def this_grid(self, node):
        self.number_arguments(node, 0, "`cuda.cg.this_grid`")
        self.program.cooperative = True
        return Value("None", GRID_GROUP)

    def grid_sync(self, node):
        self.number_arguments(node, 0, "`sync` of a grid")
        self.program.cooperative = True
        self.flush_flops()
        line = self.wait_line(node)
        self.emit(f"if w.chunk.grid_barrier(w, {self.mask}, {line}): yield ({line}, {self.mask}, ())")
        return self.compile_time_value(np.int32(0), node)

    def wait(self, node):
        self.flush_flops()
        line = self.wait_line(node)
        self.emit(f"if w.chunk.barrier(w, {self.mask}, {line}): yield ({line}, {self.mask}, ())")
