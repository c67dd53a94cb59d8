"""Arrays as a kernel sees them: whole ones, views of them, and the memory that holds a launch's arguments."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from labkit.layout import elements_at_offsets, is_in_c_order
from labkit.simulator.checks.in_flight import GlobalInFlight
from labkit.simulator.checks.shadow import GlobalShadow
from labkit.simulator.errors import LaunchError

ADDRESS_ALIGNMENT = 512  # cudaMalloc aligns to at least 256 bytes
CONSTANT_BYTES = 64 * 1024  # of a kernel


class Array:
    """An array of the kernel: where its elements lie, and what is watched about them.

    `data` is the flat storage; a shared array has a copy of `elements` for each block of the chunk, a local
    one for each lane. `alignment` is what the address of `data` is sure to be a multiple of, in bytes; `shadow` is
    None where races cannot happen, `in_flight` None where no asynchronous operation matters. `states` has, by its
    class, what each family of instructions keeps of the array.
    """

    varies = False  # the same form in every lane

    def __init__(self, name, space, data, shape, strides, offset, address, elements, line=0):
        self.name = name
        self.space = space
        self.data = data
        self.dtype = data.dtype
        self.itemsize = data.dtype.itemsize
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.address = address
        self.elements = elements
        self.line = line
        self.alignment = ADDRESS_ALIGNMENT
        self.shadow = None
        self.in_flight = None
        self.states = {}
        self.written = None
        self.fields = {}  # of a structured array, as they are used
        self.shape_values = tuple(np.int64(n) for n in shape)
        self.stride_values = tuple(np.int64(n * self.itemsize) for n in strides)
        self.size_value = np.int64(np.prod(shape, dtype=np.int64))
        self.is_in_c_order = is_in_c_order(shape, strides)
        self.contiguous = offset == 0 and self.is_in_c_order

    @property
    def root(self) -> "Array":
        """The whole array of which a view is a part."""
        return self

    def c_order(self, place):
        """The C-order number of elements, given where they lie in `data` (within one copy)."""
        return place if self.contiguous else elements_at_offsets(place - self.offset, self.shape, self.strides)

    def shape_in(self, lane) -> tuple[int, ...]:
        """Its shape, as a lane sees it."""
        return self.shape

    def position(self, flat: int) -> tuple[int, ...]:
        """The index of an element, given its place in C order."""
        return tuple(int(i) for i in np.unravel_index(flat, self.shape))


@dataclass
class Region:
    """Simulated global memory that holds one argument, or several that overlap: a copy of the bytes from `low`."""

    low: int
    data: np.ndarray
    address: int
    shadow: GlobalShadow | None = None
    in_flight: GlobalInFlight | None = None

    def first(self, value):
        """Where the first element of an argument lies in `data`."""
        return (value.ctypes.data - self.low) // value.dtype.itemsize if value.size else 0

    def view(self, value):
        """The argument as it is in simulated memory."""
        return as_strided(self.data[self.first(value) :], value.shape, value.strides)

    def array(self, name, value):
        """The argument as the kernel sees it."""
        strides = tuple(s // value.dtype.itemsize for s in value.strides)
        array = Array(name, "global", self.data, value.shape, strides, self.first(value), self.address, value.size)
        array.shadow, array.in_flight = self.shadow, self.in_flight
        return array

    def watch(self, asynchronous: bool):
        """Remembers from now on who touched each element, and with `asynchronous` what is under way there."""
        self.shadow = GlobalShadow(self.data.size)
        self.in_flight = GlobalInFlight(self.data.size) if asynchronous else None

    def mark_blank(self, value, blank):
        """Remembers which elements of an argument nothing has written."""
        self.shadow.mark_blank(self._places(value)[blank])

    def blank(self, value):
        """Which elements of an argument nothing has written up to now."""
        return self.shadow.blank(self._places(value))

    def _places(self, value):
        """Where in `data` each element of an argument lies."""
        places = np.arange(self.data.size)[self.first(value) :]
        strides = tuple(s // value.itemsize * places.itemsize for s in value.strides)
        return as_strided(places, value.shape, strides)


def place(arguments: dict[str, np.ndarray], allocations: dict[str, int]) -> dict[str, Region]:
    """Copies arguments into simulated memory, each to a region of its own unless they overlap.

    A slice of a device array stays as far from an aligned address as it is from where its memory begins, which
    `allocations` says of each device array. A GPU has host arrays in allocations of their own.
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
            inside = (low - origin) % ADDRESS_ALIGNMENT
            region = _copied({n: arguments[n] for n in group}, {n: bounds[n] for n in group}, low, address + inside)
            if inside % region.data.dtype.alignment:
                raise LaunchError(f"the argument `{name}` has elements that are not aligned; pass a copy of it")
            regions |= dict.fromkeys(group, region)
            address += -(-(inside + region.data.nbytes) // ADDRESS_ALIGNMENT) * ADDRESS_ALIGNMENT
    return regions


def _copied(arrays, bounds, low, address):
    """The region of arrays that overlap, from the byte `low` on; together they cover it."""
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
        start, stop = ((place - low) // dtype.itemsize for place in bounds[name])
        if a.size:
            data[start:stop] = as_strided(_lowest(a), (stop - start,), (dtype.itemsize,))
    return Region(low, data, address)


def _lowest(value):
    """A view of the array whose first element is the one at the lowest address."""
    return value[tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in value.strides)]
