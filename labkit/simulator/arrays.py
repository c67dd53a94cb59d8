"""Arrays as a kernel sees them, and the simulated memory that holds a launch's arguments."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from labkit.layout import elements_at_offsets, is_in_c_order
from labkit.simulator.checks.in_flight import GlobalInFlight
from labkit.simulator.checks.shadow import GlobalShadow
from labkit.simulator.errors import LaunchError
from labkit.simulator.units import ShadowOfUnits

ADDRESS_ALIGNMENT = 512  # cudaMalloc aligns to at least 256 bytes
CONSTANT_BYTES = 64 * 1024  # of a kernel


class Array:
    """An array in a kernel: its memory, its shape and strides, and the state that checks keep of its elements."""

    varies = False  # shape and strides are the same in every lane

    def __init__(self, name, space, data, shape, strides, *, elements, offset=0, address=0, line=0):
        self.name = name
        self.space = space  # "global", "shared", "local" or "constant"
        self.data = data  # flat; a shared array has `elements` of them per block of the chunk, a local one per lane
        self.dtype = data.dtype
        self.itemsize = data.dtype.itemsize
        self.shape = shape
        self.strides = strides
        self.offset = offset  # of the first element in `data`
        self.address = address  # of `data`, in bytes
        self.elements = elements
        self.line = line
        self.alignment = ADDRESS_ALIGNMENT  # a divisor of `address`
        self.shadow = None  # access history for races; None where none can happen
        self.in_flight = None  # asynchronous operations on it; None in kernels without
        self.states = {}  # that families of instructions keep of the array, by class
        self.written = None  # mask of the elements that a local array's threads have written
        self.fields = {}  # of a structured array, filled as they are used
        self.shape_values = tuple(np.int64(n) for n in shape)
        self.stride_values = tuple(np.int64(n * self.itemsize) for n in strides)
        self.size_value = np.int64(np.prod(shape, dtype=np.int64))
        self.is_in_c_order = is_in_c_order(shape, strides)
        self.contiguous = offset == 0 and self.is_in_c_order

    @property
    def root(self) -> "Array":
        """The whole array that a view is part of."""
        return self

    def c_order(self, flat):
        """Return the C-order number of elements, given their offsets in `data` (within one copy)."""
        return flat if self.contiguous else elements_at_offsets(flat - self.offset, self.shape, self.strides)

    def shape_in(self, lane) -> tuple[int, ...]:
        """Return the shape in one lane."""
        return self.shape

    def position(self, number: int) -> tuple[int, ...]:
        """Return the index of an element, given its C-order number."""
        return tuple(int(i) for i in np.unravel_index(number, self.shape))


@dataclass
class Region:
    """Simulated global memory of one argument, or of several that overlap: a copy of the bytes from address `low`."""

    low: int
    data: np.ndarray
    address: int
    shadow: GlobalShadow | ShadowOfUnits | None = None
    in_flight: GlobalInFlight | None = None

    def first(self, value):
        """Return the offset in `data` of an argument's first element."""
        return (value.ctypes.data - self.low) // value.dtype.itemsize if value.size else 0

    def view(self, value):
        """Return the argument as it is in simulated memory."""
        return as_strided(self.data[self.first(value) :], value.shape, value.strides)

    def array(self, name, value):
        """Return the argument as the kernel sees it."""
        strides = tuple(s // value.dtype.itemsize for s in value.strides)
        start = {"offset": self.first(value), "address": self.address}
        array = Array(name, "global", self.data, value.shape, strides, elements=value.size, **start)
        array.shadow, array.in_flight = self.shadow, self.in_flight
        return array

    def watch(self, asynchronous: bool, units: int):
        """Start to record accesses to each of an element's `units`, and asynchronous operations if `asynchronous`."""
        shadow = GlobalShadow(self.data.size * units)
        self.shadow = shadow if units == 1 else ShadowOfUnits(shadow, units)
        self.in_flight = GlobalInFlight(self.data.size) if asynchronous else None

    def mark_blank(self, value, blank):
        """Mark the elements of an argument that nothing has written."""
        self.shadow.mark_blank(self._offsets(value)[blank])

    def blank(self, value):
        """Return a mask of the argument's elements that nothing has written so far."""
        return self.shadow.blank(self._offsets(value))

    def _offsets(self, value):
        """Return the offset in `data` of each element of an argument."""
        offsets = np.arange(self.data.size)[self.first(value) :]
        strides = tuple(s // value.itemsize * offsets.itemsize for s in value.strides)
        return as_strided(offsets, value.shape, strides)


def place_arguments(arguments: dict[str, np.ndarray], allocations: dict[str, int]) -> dict[str, Region]:
    """Copy arguments into simulated memory; arguments that overlap share a region.

    A GPU puts each host array into its own allocation. A slice of a device array keeps its distance from the beginning
    of its allocation, whose address is in `allocations`, and with it its alignment.
    """
    groups, end = [], 0
    bounds = {name: byte_bounds(a) if a.size else (0, 0) for name, a in arguments.items()}
    for name in sorted(arguments, key=lambda n: bounds[n]):
        if bounds[name][0] < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, bounds[name][1])
    regions, address = {}, 0
    for name in arguments:
        if name not in regions:
            group = next(g for g in groups if name in g)
            low = min(bounds[n][0] for n in group)
            origin = next((allocations[n] for n in group if n in allocations and arguments[n].size), low)
            misalignment = (low - origin) % ADDRESS_ALIGNMENT
            region = _copy_overlapping(
                {n: arguments[n] for n in group}, {n: bounds[n] for n in group}, low, address + misalignment
            )
            if misalignment % region.data.dtype.alignment:
                raise LaunchError(f"the argument `{name}` has elements that are not aligned; pass a copy of it")
            regions |= dict.fromkeys(group, region)
            address += -(-(misalignment + region.data.nbytes) // ADDRESS_ALIGNMENT) * ADDRESS_ALIGNMENT
    return regions


def _copy_overlapping(arrays, bounds, low, address):
    """Return the region of arrays that overlap and together cover it, from byte `low` on."""
    first, *others = arrays
    dtype = arrays[first].dtype
    for name, a in arrays.items():
        if any(s % dtype.itemsize for s in a.strides):
            raise LaunchError(f"the argument `{name}` has elements that are not aligned; pass a copy, `{name}.copy()`")
        if a.dtype != dtype or (bounds[name][0] - low) % dtype.itemsize:
            raise LaunchError(
                f"the arguments `{first}` and `{name}` overlap in memory with different dtypes; pass a copy of one, "
                f"`{name}.copy()`"
            )
    if not others and arrays[first].flags.c_contiguous:
        return Region(low, arrays[first].reshape(-1).copy(), address)
    data = np.empty((max(b[1] for b in bounds.values()) - low) // dtype.itemsize, dtype)
    for name, a in arrays.items():
        start, stop = ((byte - low) // dtype.itemsize for byte in bounds[name])
        if a.size:
            data[start:stop] = as_strided(_lowest(a), (stop - start,), (dtype.itemsize,))
    return Region(low, data, address)


def _lowest(value):
    """Return a view whose first element is the one at the lowest address."""
    return value[tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in value.strides)]
