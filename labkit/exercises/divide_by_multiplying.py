"""A 32-bit quotient by a 33-bit multiplier, whose highest bit is implied."""

from fractions import Fraction

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import FLOAT64
from labkit.exercises.problems import expect, grid_for, one_thread_per_element

BLOCK = (64,)


def make_launch(rng, count, numerator, denominator):
    divisor = Fraction(numerator, denominator)
    shift = (-(-numerator // denominator) - 1).bit_length()
    multiplier = -(-(2 ** (32 + shift)) * denominator // numerator) - 2**32
    end = 2**32 // divisor.denominator  # n * denominator fits into 32 bits
    n = rng.integers(end, size=count, dtype=np.uint64)
    first = n * denominator // numerator * numerator // denominator  # the first number with the quotient of n
    n[::3], n[1::3] = first[::3], np.maximum(first[1::3], 1) - np.uint64(1)  # and the number before it
    n[:4] = 0, 1, end - 1, min(numerator, end - 2)
    quotients = np.array([int(dividend) * denominator // numerator for dividend in n], float)
    examples = ", ".join(map(str, n[:4].tolist()))

    def mistake(cause, divide):
        def make_outputs():
            return {1: expect(np.array([float(divide(int(a), int(a) * multiplier) % 2**32) for a in n]))}

        return Mistake(cause, make_outputs)

    return Launch(
        label=f"{count} numbers ({examples}, ...) divided by {divisor}",
        args=(n.astype(np.uint32), unwritten_array((count,), np.uint32), np.uint32(multiplier), np.uint32(shift)),
        outputs={1: expect(quotients)},
        grid=grid_for((count,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", count, "each number once"),
            Budget("global stores", count, "each quotient once"),
            Budget(FLOAT64, 0, "whole numbers need none: float64 has 53 bits, and a product of these 64"),
        ),
        duties=(one_thread_per_element((count,), BLOCK),),
        mistakes=(
            mistake("the highest bit of the multiplier were left out", lambda n, product: (product >> 32) >> shift),
            mistake("the sum had 32 bits", lambda n, product: ((product >> 32) + n) % 2**32 >> shift),
            mistake("the product had 32 bits", lambda n, product: n >> shift),
            mistake("the lower half of the product were taken", lambda n, product: (product % 2**32 + n) >> shift),
            mistake("n were added after the shift", lambda n, product: ((product >> 32) >> shift) + n),
            mistake("nothing were shifted", lambda n, product: (product >> 32) + n),
            mistake("the shift were larger by 1", lambda n, product: ((product >> 32) + n) >> (shift + 1)),
        ),
    )


EXERCISE = Exercise(
    title="Divide by multiplying",
    task="Divide all n of 32 bits, rounding down. The multiplier needs 33 bits for that, "
    "2^(32 + shift) / d rounded up, and you are given it minus 2^32: put the highest bit back. You are not given d, "
    "which may be 2.5. Unlike in `fast_divide`, n may use all 32 bits, so do not double it.",
    points=3,
    function="divide",
    make_launch=make_launch,
    sizes=(  # numbers, and a divisor as a fraction
        (100, 7, 1),
        (97, 1, 1),
        (110, 9, 1),
        (130, 5, 2),
        (64, 2**31 - 1, 1),
    ),
    random_sizes=(
        ((150, 200), range(3, 1000, 2), (1,)),
        ((77, 93), range(10**6, 2**31, 7919), (1,)),
        ((120, 131), range(106, 8001, 105), (3, 5, 7)),
        (Above(200), (2, 4, 8, 64, 1024, 2**20), (1,)),
    ),
)
