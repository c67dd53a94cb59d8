"""Functions of `cuda` in a kernel: positions here, others in the bases; `language.INTRINSICS` names the methods."""

from labkit.simulator.seam import types
from labkit.simulator.translator.allocation import Allocations
from labkit.simulator.translator.atomics import Atomics
from labkit.simulator.translator.barriers import Barriers
from labkit.simulator.translator.collectives import Collectives
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Tuple, Value


class Positions(Variables):
    """`cuda.grid` and `cuda.gridsize`: the position of a thread in the grid."""

    def axes(self, node):
        if len(node.args) != 1:
            self.fail(node, f"`{self.written(node.func)}` takes one number: how many dimensions, 1, 2 or 3")
        count = self.expression(node.args[0]).static
        if count not in (1, 2, 3):
            self.fail(node, f"`{self.written(node.func)}` takes the number of dimensions, 1, 2 or 3, as a plain number")
        return int(count)

    def grid(self, node):
        axes = self.axes(node)
        if axes == 1:
            return self.temp("w.grid1()", types.int64)
        return self.temp(f"w.grid({axes})", Tuple((types.int64,) * axes))

    def gridsize(self, node):
        axes = self.axes(node)
        if axes == 1:
            return Value("w.gridsize(0)", types.int64)
        return Value(f"({', '.join(f'w.gridsize({i})' for i in range(axes))})", Tuple((types.int64,) * axes))


class Intrinsics(Positions, Allocations, Barriers, Collectives, Atomics):
    """The functions of `cuda`, except `cuda.jit`."""
