"""Array layouts: conversion between element numbers and offsets in memory.

An array is given by its shape and strides (NumPy's: the distance of neighbours along each axis, in bytes or elements;
negative for a reversed axis). Offsets are relative to the first element. Elements are numbered in C order, the last
axis fastest, in any layout.
"""

from math import prod

import numpy as np
from jaxtyping import Integer


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in C order without gaps."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def is_in_c_order(shape: tuple[int, ...], strides: tuple[int, ...], unit: int = 1) -> bool:
    """Return whether elements are contiguous in C order; `unit` is the stride between neighbours."""
    steps = zip(shape, strides, c_strides(shape), strict=True)
    return 0 in shape or all(stride == unit * step for n, stride, step in steps if n > 1)


def element_offsets(
    elements: Integer[np.ndarray, "..."], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Integer[np.ndarray, "..."]:
    """Return the offsets of elements from the first."""
    offset = 0 * elements
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        offset = offset + elements % max(size, 1) * stride
        elements = elements // max(size, 1)
    return offset


def elements_at_offsets(
    offsets: Integer[np.ndarray, "..."], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Integer[np.ndarray, "..."]:
    """Return the elements at offsets from the first; if several share an address (a stride of 0), one of them.

    This is valid for all arrays made from one in C order by slicing, transposing and broadcasting. For an offset at
    which no element begins the result is meaningless.
    """
    lowest = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size and stride < 0)
    remainder, elements = offsets - lowest, 0 * offsets
    for axis in sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])):
        size, step = shape[axis], abs(strides[axis])
        if size > 1 and step:
            index = np.minimum(remainder // step, size - 1)
            remainder = remainder - index * step
            elements = elements + (size - 1 - index if strides[axis] < 0 else index) * prod(shape[axis + 1 :])
    return elements
