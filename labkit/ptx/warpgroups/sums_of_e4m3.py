"""Sums of e4m3 products as the tensor cores of Hopper make them: 13 bits behind the largest summand.

An instruction adds 32 products to an accumulator. It shifts all 33 to the largest exponent, where a product has the sum
of its factors' exponents, also if it is 2 or more times that power of two; cuts off what is then behind the 13th bit of
the fraction, adds the rest exactly, and cuts the sum to 13 bits again. So an accumulator that is 2**14 times as large
as each product stays what it is. (DeepSeek-V3 Technical Report, 2024, sections 3.3.2 and 3.5.2, which counts 14 bits
with the leading one; Zhang and others, SageAttention2, 2024, which calls it FP22.)

On an H100 sums of random codes, zeros, subnormal numbers, and beside large accumulators have these very bits. Sums of
4,100 and of 16,384 rounded weights of attention had logarithms 0.06 and 0.3 too low in the mean, and matrix products of
random numbers along k = 1024, 8192 and 16384 were 1.75e-3, 2.64e-3 and 3.55e-3 off with bfloat16's rounding. Here it is
0.06 and 0.28, and 1.75e-3, 2.59e-3 and 3.50e-3.
`mma` of e4m3 is another matter: the compiler makes float16 of its operands, for the tensor cores of that.
"""

import numpy as np
from numba import njit

KEPT_BITS = 13
RESULT = -1 << 23 - KEPT_BITS  # bits of a float32 that stay
EXPONENT_AT, EXPONENT_OF_1, LARGEST_EXPONENT = 23, 127, 255  # of the bits of float32
LEAST_POWER = np.float32(2.0**-6)  # of e4m3: subnormal numbers have the exponent of the smallest normal one


@njit(cache=True)
def powers(numbers):
    """Two to the exponents that numbers have as e4m3; of 0, none."""
    found = np.empty_like(numbers)
    for at, number in np.ndenumerate(numbers):
        found[at] = max(abs(number), LEAST_POWER) if number != 0 else 0
    bits = found.view(np.int32)
    bits &= -1 << EXPONENT_AT
    return found


@njit(cache=True)
def add_products(sums, left, right):
    """sums += left @ right.T for each of some products, in place: of float32 whose last axis, k, has 32 numbers."""
    count, rows, depth = left.shape
    columns = right.shape[1]
    largest, kept = np.empty(columns, np.float32), np.empty(columns, np.float32)
    bits, across = largest.view(np.int32), np.empty((depth, columns), np.float32)
    powers_left, powers_right = powers(left), powers(right)
    powers_across = np.empty_like(across)
    into, back = np.empty(columns, np.float32), np.empty(columns, np.float32)
    into_bits, back_bits = into.view(np.int32), back.view(np.int32)
    least = KEPT_BITS + 1  # exponent whose last bit float32 still has: what is smaller is cut off
    result_bits = sums.view(np.int32)
    for g in range(count):
        across[:], powers_across[:] = right[g].T, powers_right[g].T
        for row in range(rows):
            total = sums[g, row]
            for n in range(columns):
                largest[n] = abs(total[n])
            for k in range(depth):
                power = powers_left[g, row, k]
                for n in range(columns):
                    largest[n] = max(largest[n], power * powers_across[k, n])
            for n in range(columns):
                exponent = max(bits[n] >> EXPONENT_AT, least)
                into_bits[n] = (2 * EXPONENT_OF_1 - exponent + KEPT_BITS) << EXPONENT_AT
                back_bits[n] = (exponent - KEPT_BITS) << EXPONENT_AT
            for n in range(columns):
                kept[n] = np.trunc(total[n] * into[n])
            for k in range(depth):
                x = left[g, row, k]
                for n in range(columns):
                    kept[n] += np.trunc(x * across[k, n] * into[n])
            for n in range(columns):
                total[n] = kept[n] * back[n]
                result_bits[g, row, n] &= RESULT
