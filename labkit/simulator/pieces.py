"""The memory of an array as elements of another type: `x.view(dtype)`, `z.real`, `z.imag`.

An array and its pieces share their races: the shadow of an array that a kernel takes apart has a cell for each of the
smallest pieces (`units`).
"""

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.errors import KernelError
from labkit.simulator.slices import Either, View
from labkit.simulator.units import ShadowOfUnits


class Pieces(Array):
    """All of an array's memory as elements of another dtype; a thread's own array has those from `first` on."""

    def __init__(self, array, dtype, first, line):
        if array.in_flight is not None or array.states:
            raise KernelError(
                f"{array.name} is read as another type here, which is not simulated in a kernel with asynchronous "
                "copies or tensor cores; give it an array of that type",
                line,
            )
        old, new = array.itemsize, dtype.itemsize
        if array.space == "local":  # its elements are in rows, an element of each lane next to another
            data = array.data.view(dtype) if old == new else [array.data.real, array.data.imag][first]
            elements = array.elements
        else:
            data = array.data[: array.data.size * old // new * new // old].view(dtype)
            elements = array.elements * old // new
        place = {"elements": elements, "address": array.address, "line": array.line}
        super().__init__(array.name, array.space, data, array.shape, array.strides, **place)
        self.dtype, self.alignment, self.written, self.whole = dtype, array.alignment, array.written, array
        if array.space == "shared" and array.elements * old % new:
            raise KernelError(f"{array.name} does not hold a whole number of {dtype}; make it longer", line)
        if array.shadow is not None:
            self.shadow = _shadow_of_pieces(array, new, line)

    def c_order(self, flat):
        if self.space != "local":
            flat = flat * self.itemsize // self.whole.itemsize
        return self.whole.c_order(flat)

    def position(self, number):
        return self.whole.position(number)


def part(array, name, line):
    """Return the real or the imaginary parts of a complex array: every second number."""
    if isinstance(array, Either):
        return array.each(lambda a: part(a, name, line))
    first = int(name == "imag")
    pieces = _pieces(array, np.empty(0, array.dtype).real.dtype, first, line)
    if array.space == "local":
        return View(pieces, array.shape, array.strides, array.offset)
    return View(pieces, array.shape, tuple(2 * n for n in array.strides), 2 * array.offset + first)


def view_as(w, mask, line, array, dtype):
    """Return `array.view(dtype)`: the last axis becomes shorter or longer."""
    if isinstance(array, Either):
        return array.each(lambda a: view_as(w, mask, line, a, dtype))
    old, new = array.itemsize, dtype.itemsize
    if array.space == "local" and (old != new or isinstance(array.root, Pieces)):
        raise KernelError(f"{array.name} is a thread's own, and is taken only as one other type of its size", line)
    pieces = _pieces(array, dtype, 0, line)
    if old == new:
        return View(pieces, array.shape, array.strides, array.offset)
    lanes, (*sizes, last), (*strides, step) = w.active(mask), array.shape, array.strides
    if np.any(lanes & (last != 1) & (step != 1)):
        raise KernelError(f"only along a last axis without gaps does {array.name} become {dtype}", line)
    if np.any(lanes & (last * old % new != 0)):
        raise KernelError(f"the last axis of {array.name} holds no whole number of {dtype}", line)
    if any(np.any(lanes & (n * old % new != 0)) for n in (*strides, array.offset)):
        raise KernelError(f"{array.name} begins between two elements of {dtype}, which no GPU reads", line)
    shape = (*sizes, last * old // new)
    return View(pieces, shape, (*(n * old // new for n in strides), 1), array.offset * old // new)


def bits_as(value, dtype):
    """Return a number's bits as a number of another type of its size."""
    return value.view(dtype)


def _pieces(array, dtype, first, line):
    """Return the pieces of an array's root, the same ones each time."""
    root = getattr(array.root, "whole", array.root)
    key = dtype, first
    if key not in root.fields:
        root.fields[key] = Pieces(root, dtype, first, line)
    return root.fields[key]


def _shadow_of_pieces(array, size, line):
    shadow = array.shadow
    units, units_per_element = shadow.units if isinstance(shadow, ShadowOfUnits) else (shadow, 1)
    unit = array.itemsize // units_per_element
    if size % unit:
        raise KernelError(
            f"{array.name} is in dynamic shared memory: make an array of the other type there, "
            "`cuda.shared.array(0, dtype)`, which begins at the same byte",
            line,
        )
    return units if size == unit else ShadowOfUnits(units, size // unit)
