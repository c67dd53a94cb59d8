"""Sums of e4m3 products as computed by the tensor cores of Hopper: 13 bits below the largest summand.

An instruction adds 32 products to an accumulator. It aligns all 33 to the largest exponent, where a product's exponent
is the sum of its factors' exponents even if its fraction is 2 or more. It truncates them to 13 bits of fraction, adds
them exactly, and truncates the sum to 13 bits. So an accumulator 2**14 times as large as each product never changes.
(DeepSeek-V3 Technical Report, 2024, sections 3.3.2 and 3.5.2, which counts 14 bits with the leading one; Zhang and
others, SageAttention2, 2024, which calls it FP22.)

An H100 gives exactly these bits for random codes, zeros, subnormal numbers and large accumulators. On it sums of 4,100
and of 16,384 rounded weights of attention had logarithms 0.06 and 0.3 too low in the mean; matrix products of random
numbers along k = 1024, 8192 and 16384 had errors of 1.75e-3, 2.64e-3 and 3.55e-3 with bfloat16's rounding. Here the
figures are 0.06 and 0.28, and 1.75e-3, 2.59e-3 and 3.50e-3.
`mma` of e4m3 differs: the compiler converts its operands to float16.
"""

import numpy as np

from labkit.simulator.seam import njit

KEPT_BITS = 13
RESULT = -1 << 23 - KEPT_BITS  # mask of a float32's kept bits
EXPONENT_SHIFT, EXPONENT_BIAS = 23, 127  # of float32
MIN_POWER = np.float32(2.0**-6)  # of e4m3: subnormal numbers have the exponent of the smallest normal one


@njit(cache=True)
def powers(numbers):
    """Return two to the exponent of each number as e4m3, and 0 for 0."""
    normal = np.empty_like(numbers)
    for index, number in np.ndenumerate(numbers):
        normal[index] = max(abs(number), MIN_POWER) if number != 0 else 0
    bits = normal.view(np.int32)
    bits &= -1 << EXPONENT_SHIFT  # clears the fractions
    return normal


@njit(cache=True)
def add_products(sums, left, right):
    """Add left @ right.T to sums, in place, for each product of a batch of float32 with 32 numbers along k."""
    count, rows, depth = left.shape
    columns = right.shape[1]
    largest, kept = np.empty(columns, np.float32), np.empty(columns, np.float32)
    bits, right_by_k = largest.view(np.int32), np.empty((depth, columns), np.float32)
    powers_left, powers_right = powers(left), powers(right)
    powers_right_by_k = np.empty_like(right_by_k)
    scale, unscale = np.empty(columns, np.float32), np.empty(columns, np.float32)
    scale_bits, unscale_bits = scale.view(np.int32), unscale.view(np.int32)
    min_exponent = KEPT_BITS + 1  # smallest exponent whose kept bits float32 can hold
    result_bits = sums.view(np.int32)
    for g in range(count):
        right_by_k[:], powers_right_by_k[:] = right[g].T, powers_right[g].T
        for row in range(rows):
            total = sums[g, row]
            for n in range(columns):
                largest[n] = abs(total[n])
            for k in range(depth):
                power = powers_left[g, row, k]
                for n in range(columns):
                    largest[n] = max(largest[n], power * powers_right_by_k[k, n])
            for n in range(columns):
                exponent = max(bits[n] >> EXPONENT_SHIFT, min_exponent)
                scale_bits[n] = (2 * EXPONENT_BIAS - exponent + KEPT_BITS) << EXPONENT_SHIFT  # the largest gets 13 bits
                unscale_bits[n] = (exponent - KEPT_BITS) << EXPONENT_SHIFT  # 1 / scale
            for n in range(columns):
                kept[n] = np.trunc(total[n] * scale[n])
            for k in range(depth):
                x = left[g, row, k]
                for n in range(columns):
                    kept[n] += np.trunc(x * right_by_k[k, n] * scale[n])
            for n in range(columns):
                total[n] = kept[n] * unscale[n]
                result_bits[g, row, n] &= RESULT
