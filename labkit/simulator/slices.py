"""Parts of arrays that a kernel names: slices, rows, and variables that hold different arrays in different lanes."""

import math
from typing import NamedTuple

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.errors import KernelError
from labkit.simulator.lanes import intersect, minus, select, union


class Slice(NamedTuple):
    """`start:stop:step` in every lane, each None where it was left out."""

    start: np.generic | np.ndarray | None
    stop: np.generic | np.ndarray | None
    step: np.generic | np.ndarray | None


class View(Array):
    """A part of an array, which shares its memory; its form may differ from lane to lane."""

    def __init__(self, array, shape, strides, offset):
        vars(self).update(vars(array))
        self._root = array.root
        self.shape, self.strides, self.offset = shape, strides, offset
        self.varies = any(isinstance(n, np.ndarray) for n in (offset, *shape, *strides))
        self.shape_values = tuple(np.int64(n) for n in shape)
        self.stride_values = tuple(np.int64(n) * self.itemsize for n in strides)
        size = np.int64(1)
        for n in self.shape_values:
            size = size * n
        self.size_value = size

    @property
    def root(self):
        return self._root

    def c_order(self, flat):
        return self.root.c_order(flat)

    def position(self, flat):
        return self.root.position(flat)

    def shape_in(self, lane):
        return tuple(int(n[lane]) if isinstance(n, np.ndarray) else int(n) for n in self.shape)


def view(array, *parts) -> View:
    """Return `array[parts]`: a number selects one element along its axis, a Slice some; further axes stay whole.

    A number outside its axis leaves nothing to read, so that the access which follows is reported.
    """
    if isinstance(array, Either):
        return array.each(lambda a: view(a, *parts))
    shape, strides, offset, inside = [], [], array.offset, True
    for part, size, stride in zip(parts, array.shape, array.strides):
        if isinstance(part, Slice):
            start, step, length = _resolve_slice(part, size)
            offset = offset + start * stride
            shape.append(length)
            strides.append(stride * step)
        else:
            part = np.int64(part)  # NumPy makes a float64 of a uint64 and an int64
            inside = inside & (-size <= part) & (part < size)
            offset = offset + np.where(part < 0, part + size, part)[()] * stride
    shape += array.shape[len(parts) :]
    strides += array.strides[len(parts) :]
    if not np.all(inside):
        shape = [np.where(inside, n, 0)[()] for n in shape]
    return View(array, tuple(map(_plain, shape)), tuple(map(_plain, strides)), _plain(offset))


def transpose(array) -> View:
    """Return `array.T`: the same elements, with their indices in the opposite order."""
    if isinstance(array, Either):
        return array.each(transpose)
    return View(array, array.shape[::-1], array.strides[::-1], array.offset)


def reshape(w, mask, line, array, *shape) -> View:
    """Return `array.reshape(shape)`: the elements in C order under other indices; -1 is the size that fits."""
    if isinstance(array, Either):
        return array.each(lambda a: reshape(w, mask, line, a, *shape))
    lanes, step = w.active(mask), 1
    for size, stride in zip(array.shape[::-1], array.strides[::-1]):
        if np.any(lanes & (size > 1) & (stride != step)):
            raise KernelError("only an array whose elements lie one after another in C order is reshaped", line)
        step = step * size
    known_size = math.prod(size for size in shape if not np.array_equal(size, -1))
    shape = [step // np.maximum(known_size, 1) if np.array_equal(size, -1) else size for size in shape]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if np.any(lanes & (math.prod(shape) != step)) or any(np.any(lanes & (size < 0)) for size in shape):
        raise KernelError(f"{array.name} has {step} elements, and the shape that it is to take has others", line)
    return View(array, tuple(map(_plain, shape)), tuple(map(_plain, strides)), array.offset)


def _resolve_slice(part, size):
    """Return (first index, step, length) of a slice of `size` elements, as `slice.indices`."""
    part = Slice(*(None if n is None else np.int64(n) for n in part))
    step = np.int64(1) if part.step is None else part.step
    forward = step > 0
    low, high = np.where(forward, 0, -1), np.where(forward, size, size - 1)
    start = np.where(forward, low, high) if part.start is None else _clip(part.start, size, low, high)
    stop = np.where(forward, high, low) if part.stop is None else _clip(part.stop, size, low, high)
    length = np.maximum(np.where(forward, -((start - stop) // step), (stop - start + step + 1) // step), 0)
    return np.where(length > 0, start, 0)[()], step, length[()]


def _clip(index, size, low, high):
    return np.clip(np.where(index < 0, index + size, index), low, high)


def _plain(number):
    return number if isinstance(number, np.ndarray) else int(number)


class Either:
    """A variable to which lanes assigned different arrays: (array, its lanes) pairs."""

    def __init__(self, parts):
        self.parts = parts

    def each(self, change) -> "Either":
        """Return the same choice between changed arrays."""
        return Either([(change(array), lanes) for array, lanes in self.parts])

    def _blended(self, get):
        return [
            self._blend([get(array)[axis] for array, _ in self.parts]) for axis in range(len(get(self.parts[0][0])))
        ]

    def _blend(self, values):
        result = values[0]
        for value, (_, lanes) in zip(values[1:], self.parts[1:]):
            result = np.where(lanes, value, result) if lanes is not None else value
        return result

    shape_values = property(lambda self: self._blended(lambda a: a.shape_values))
    stride_values = property(lambda self: self._blended(lambda a: a.stride_values))
    size_value = property(lambda self: self._blend([a.size_value for a, _ in self.parts]))


def select_array(mask, new, old):
    """Return `new` in the lanes of `mask`, `old` in the others; one array where both are the same."""
    if mask is None or old is None or new is old:
        return new
    parts = []
    for array, lanes in [*parts_of(old), *[(array, _intersect_masks(mask, lanes)) for array, lanes in parts_of(new)]]:
        parts = [(other, minus(other_lanes, lanes)) for other, other_lanes in parts]
        same = next((i for i, (a, _) in enumerate(parts) if a is array), None)
        if same is None:
            parts.append((array, lanes))
        else:
            parts[same] = (array, union(parts[same][1], lanes))
    parts = [(array, lanes) for array, lanes in parts if lanes is not False]
    return parts[0][0] if len(parts) == 1 else Either(parts)


def select_parts(mask, new, old):
    """Return `new` in the lanes of `mask`, `old` in the others: numbers, arrays, or tuples of these."""
    if mask is None or old is None:
        return new
    if isinstance(new, tuple):
        return tuple(select_parts(mask, n, o) for n, o in zip(new, old))
    return (select_array if isinstance(new, Array | Either) else select)(mask, new, old)


def select_entry(mask, values, index):
    """Return the value of a tuple at each lane's index; a negative one counts from the end."""
    if not isinstance(index, np.ndarray):
        return values[index]
    chosen = None
    for number, value in enumerate(values):
        lanes = intersect(mask, (index == number) | (index == number - len(values)))
        if lanes is not False:
            chosen = select_parts(lanes, value, chosen)
    return chosen


def parts_of(array):
    """Return the (array, lanes) pairs of a variable."""
    return array.parts if isinstance(array, Either) else [(array, None)]


def _intersect_masks(mask, lanes):
    if lanes is None or mask is False:
        return mask
    if mask is None or lanes is False:
        return lanes
    return mask & lanes if (mask & lanes).any() else False
