"""Where the elements of an array lie: from C-order numbers to distances in memory, and back.

An array is its shape and its strides (NumPy's: how far neighbours along each axis lie apart, in bytes or in elements,
below 0 where an axis runs backwards). Distances are from its first element. Elements are numbered in C order, the last
axis fastest, however they lie.
"""

from math import prod

import numpy as np
from jaxtyping import Integer


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of an array in C order without gaps."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def is_in_c_order(shape: tuple[int, ...], strides: tuple[int, ...], unit: int = 1) -> bool:
    """Whether elements follow one another in C order without gaps; `unit` is the stride from one to the next."""
    steps = zip(shape, strides, c_strides(shape), strict=True)
    return 0 in shape or all(stride == unit * step for n, stride, step in steps if n > 1)


def element_offsets(
    elements: Integer[np.ndarray, "..."], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Integer[np.ndarray, "..."]:
    """How far elements lie from the first."""
    distance = 0 * elements
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        distance = distance + elements % max(size, 1) * stride
        elements = elements // max(size, 1)
    return distance


def elements_at_offsets(
    distances: Integer[np.ndarray, "..."], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Integer[np.ndarray, "..."]:
    """The elements that lie so far from the first; where several share a place (a stride of 0), one of them.

    Holds for what slicing, transposing and broadcasting make of an array in C order. What it says of a distance at
    which no element begins means nothing.
    """
    backwards = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size and stride < 0)
    rest, elements = distances - backwards, 0 * distances
    for axis in sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])):
        size, step = shape[axis], abs(strides[axis])
        if size > 1 and step:
            index = np.minimum(rest // step, size - 1)
            rest = rest - index * step
            elements = elements + (size - 1 - index if strides[axis] < 0 else index) * prod(shape[axis + 1 :])
    return elements
