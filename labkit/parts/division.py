"""Integer division by a divisor fixed before the launch, as one multiply-high: GPUs have no divide instruction.

An ordinary division takes about twenty instructions. A divisor d has a multiplier m, about 2**32 * 2**shift / d: the
upper half of 2 n * m, shifted right, is n // d for every n below 2**31. (Granlund and Montgomery, Division by Invariant
Integers using Multiplication, 1994, theorem 4.2; Warren, Hacker's Delight, chapter 10.)
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda

DIVIDEND_LIMIT = 2**31  # dividends are smaller, divisors at most equal


class Divisor(NamedTuple):
    """Divisor as a kernel argument: the number, its multiplier and its shift, uint32 each."""

    value: np.uint32
    multiplier: np.uint32
    shift: np.uint32


def make_divisor(value: int) -> Divisor:
    """Compute the multiplier and shift of a divisor; raise ValueError if it is not between 1 and 2**31."""
    if not 1 <= value <= DIVIDEND_LIMIT:
        raise ValueError(f"{value} divides no numbers here: give one from 1 to {DIVIDEND_LIMIT}")
    shift = (value - 1).bit_length()
    return Divisor(np.uint32(value), np.uint32(-(-(DIVIDEND_LIMIT << shift) // value)), np.uint32(shift))


@cuda.jit(device=True)
def fast_divide(n, divisor):
    """Return n // divisor.value for a uint32 n below 2**31; the upper half of a 64-bit product is one instruction."""
    doubled = np.uint64(np.uint32(n + n))
    return np.uint32(np.uint32(doubled * np.uint64(divisor.multiplier) >> np.uint64(32)) >> divisor.shift)
