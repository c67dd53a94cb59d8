"""Arrays that a kernel takes from its module instead of its arguments."""

import numpy as np

from labkit.layout import c_strides
from labkit.simulator import numba_types
from labkit.simulator.arrays import CONSTANT_BYTES, Array
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array as ArrayType
from labkit.simulator.values import Value


class Captured(Variables):
    """Constant memory, and device arrays of the module."""

    def constant_like(self, node) -> Value:
        """Translate `cuda.const.array_like(X)`: X, a NumPy array of the module, in constant memory."""
        value = self.expression(node.args[0]) if len(node.args) == 1 else None
        if value is None or not isinstance(value.type, ArrayType) or value.type.space != "constant":
            self.fail(
                node,
                "`cuda.const.array_like` takes one NumPy array that is there when the kernel is compiled: make it "
                "above the kernel",
            )
        return value

    def constant_array(self, node, array: np.ndarray) -> Value:
        """Return a NumPy array of the module, which numba copies into constant memory at compile time."""
        name = self.written(node)
        if array.dtype.kind not in "biufcV":
            self.fail(
                node, f"`{name}` is an array of {array.dtype}, shape {array.shape}; a kernel takes numbers from it"
            )
        if array.nbytes > CONSTANT_BYTES:
            self.fail(
                node,
                f"`{name}` has {array.nbytes} bytes, and a kernel has {CONSTANT_BYTES} of constant memory; pass it as "
                "an argument",
            )
        if id(array) not in self.program.constants:
            data = array.flatten()
            constant = Array(name, "constant", data, array.shape, c_strides(array.shape), elements=data.size)
            self.program.constants[id(array)] = constant
        kind = ArrayType(numba_types.type_of(array.dtype), array.ndim, "constant", name)
        return Value(self.constant(self.program.constants[id(array)]), kind)

    def captured_array(self, node, array) -> Value:
        """Return a device array of the module: the kernel reads its contents at the launch."""
        name = self.written(node)
        self.program.captured[name] = array
        kind = ArrayType(numba_types.type_of(array.dtype), array.ndim, "global", name)
        return Value(f"w.chunk.launch.captured[{name!r}]", kind)
