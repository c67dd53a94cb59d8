"""Remainders by the strides: pixels of an image whose gradients take the same taps of a filter.

Output p uses the pixels p * stride + r * dilation - before. So pixel h is used by output (h + before - r * dilation) /
stride, for the taps r that make this an integer. Pixels with the same remainder by the stride share these taps, and
their outputs are consecutive: the gradient of these pixels is a convolution with a stride of 1.
"""

from math import gcd
from typing import NamedTuple


class Remainder(NamedTuple):
    """Pixels along an axis with the same remainder by the stride, and their taps, the last tap first.

    `before` counts the missing outputs before the first one, for the first pixel.
    """

    first: int
    pixels: int
    last_tap: int
    tap_step: int
    taps: int
    before: int
    dilation: int


def remainders(size: int, taps: int, stride: int, before: int, dilation: int) -> list[Remainder]:
    """Return the remainders along an axis that have pixels."""
    out, common = [], gcd(stride, dilation)
    for first in range(min(stride, size)):
        matching = [tap for tap in range(taps) if (first + before - tap * dilation) % stride == 0]
        last = matching[-1] if matching else 0
        pixels = -(-(size - first) // stride)
        first_output = (first + before - last * dilation) // stride
        out.append(Remainder(first, pixels, last, stride // common, len(matching), -first_output, dilation // common))
    return out
