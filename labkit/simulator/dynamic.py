"""Dynamic shared memory: every `cuda.shared.array(0, dtype)` of a block begins at the same byte.

An instruction may place further arrays there, each from a given byte on. (CUDA C++ Programming Guide, "__shared__":
arrays declared `extern` all start at the same address.)
"""

import math

import numpy as np

from labkit.layout import c_strides
from labkit.simulator.arrays import Array
from labkit.simulator.checks.in_flight import InFlight
from labkit.simulator.checks.shadow import SharedShadow
from labkit.simulator.units import ShadowOfUnits

STEP_BYTES = 16  # a block's memory is a multiple of this, so that it is aligned for every scalar


class DynamicMemory:
    """The dynamic shared memory of a chunk's blocks, as arrays of several dtypes.

    Its state is kept per unit, the largest piece of which elements of all these dtypes are made.
    """

    def __init__(self, dtypes, bytes_per_block, launch, epochs):
        step = math.lcm(STEP_BYTES, *(d.itemsize for d in dtypes))
        self.bytes_per_block = -(-bytes_per_block // step) * step
        buffer = np.zeros(self.bytes_per_block * len(epochs), np.uint8)
        unit = unit_bytes(dtypes)
        units = SharedShadow(buffer.size // unit, launch, epochs)
        in_flight = InFlight(buffer.size // unit) if launch.program.is_asynchronous else None
        states = launch.program.shared_states(buffer.size // unit)
        self._in_flight = {d: in_flight and in_flight.of_elements(d.itemsize // unit) for d in dtypes}
        self._states = {d: {k: s.of_elements(d.itemsize // unit) for k, s in states.items()} for d in dtypes}
        self._data = {d: buffer.view(d) for d in dtypes}
        self._shadows = {d: units if d.itemsize == unit else ShadowOfUnits(units, d.itemsize // unit) for d in dtypes}

    def array(self, allocation, shape, address) -> Array:
        """Return an allocation's array, in memory that begins at this address of the block's."""
        dtype, first = allocation.dtype, (allocation.first_byte or 0) // allocation.dtype.itemsize
        elements = self.bytes_per_block // dtype.itemsize
        start = {"offset": first, "address": address, "line": allocation.line}
        array = Array(allocation.name, "shared", self._data[dtype], shape, c_strides(shape), elements=elements, **start)
        array.shadow = self._shadows[dtype]
        array.in_flight, array.states = self._in_flight[dtype], self._states[dtype]
        return array


def unit_bytes(dtypes) -> int:
    """Return the size of the largest pieces of which elements of these dtypes, and their fields, are made."""
    return math.gcd(*(size for dtype in dtypes for size in _field_sizes(dtype)))


def _field_sizes(dtype):
    yield dtype.itemsize
    for kind, start, *_ in (dtype.fields or {}).values():
        yield start
        yield from _field_sizes(kind.base)
