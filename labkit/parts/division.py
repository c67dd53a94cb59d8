"""Division by a number that stays the same, as one multiplication: GPUs have no instruction that divides.

A quotient of whole numbers takes about twenty instructions. For a divisor d that is known beforehand there is a
multiplier m, about 2**32 * 2**shift / d, so that the upper half of 2 n * m, moved right by the shift, is n // d for
every n below 2**31. (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994, theorem 4.2;
Warren, Hacker's Delight, chapter 10.)
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda

MOST = 2**31  # dividends are below, and divisors at most


class Divisor(NamedTuple):
    """A divisor as kernels take it, each part a uint32."""

    value: np.uint32
    multiplier: np.uint32
    shift: np.uint32


def divisor(value: int) -> Divisor:
    """What `divided` needs to divide by this number.

    Raises
    ------
    ValueError
        It is not between 1 and 2**31.
    """
    if not 1 <= value <= MOST:
        raise ValueError(f"{value} divides no numbers here: give one from 1 to {MOST}")
    shift = (value - 1).bit_length()
    return Divisor(np.uint32(value), np.uint32(-(-(MOST << shift) // value)), np.uint32(shift))


@cuda.jit(device=True)
def divided(n, by):
    """n // by.value, for a uint32 n below 2**31: the upper half of a product of 64 bits is one instruction."""
    doubled = np.uint64(np.uint32(n + n))
    return np.uint32(np.uint32(doubled * np.uint64(by.multiplier) >> np.uint64(32)) >> by.shift)
