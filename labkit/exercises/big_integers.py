"""The product of two big integers by Fourier transforms of their digits."""

import ast

import numpy as np

from labkit.checking import NO_FLOAT64, Budget, Duty, Exercise, InputDependence, Launch, Mistake, unwritten_array
from labkit.checking.budget import EXCHANGED, LOADING_THREADS, PLAIN_FLOPS
from labkit.checking.placed_cure import PlacedCure, operations
from labkit.exercises.bit_reversal import roots_of_unity
from labkit.exercises.problems import shared_among_threads
from labkit.ladder import Expected
from labkit.table import count_text

THREADS = 128
CARRY = "Add each sum to the carry, store the last digit of that, and keep a tenth of it for the next."
HALVE = PlacedCure(
    "After the inverse transform `im` holds twice the product, times the points: divide by `2 * points`.",
    operations(ast.Div),
)
LAST_DIGIT = "Let the loop over digits run to `product.size`: the last digit is what is carried."
MIN_POINTS = 64  # from here on no transform is right without its roots


def make_launch(rng, a_digits, b_digits, nines):
    a, b = (_draw_digits(rng, count, nines) for count in (a_digits, b_digits))
    product, size = _to_integer(a) * _to_integer(b), a_digits + b_digits
    value = _to_digits(product, size)
    bits = max(1, (a_digits + b_digits - 1).bit_length())
    points = 2**bits
    is_long = points >= MIN_POINTS
    sums = np.zeros(points, int)  # of products, before they are carried
    sums[: size - 1] = np.convolve(a, b)

    def expect_digits(digits):
        return {2: Expected(digits, np.zeros(size))}

    transforms = (
        Duty(PLAIN_FLOPS, 5 * points * bits, "those of one transform, and there are two or three"),
        Duty(EXCHANGED, points * bits // 2, "the passes of one transform, each of which exchanges points"),
        shared_among_threads(min(THREADS, points // 2), most_per_thread=2, counter=LOADING_THREADS),
    )
    return Launch(
        label=f"{count_text(a_digits, 'digit')} times {b_digits}{', all of them 9' if nines else ''}, {points} points",
        args=(a, b, unwritten_array((a_digits + b_digits,), np.int32), roots_of_unity(points)[: points // 2], bits),
        outputs=expect_digits(value),
        grid=(1,),
        block=(THREADS,),
        budgets=(
            Budget(
                "global loads",
                a_digits + b_digits + 3 * points * bits,
                "each digit once, and the roots of three transforms",
                {"a": a_digits, "b": b_digits},
            ),
            Budget("global stores", a_digits + b_digits, "each digit once"),
            Budget("shared loads", 12 * points * (bits + 2), "those of three transforms, and 24 per point"),
            NO_FLOAT64,
        ),
        duties=(Duty("barriers", 2 * bits, "two transforms, with one after each pass"), *transforms * is_long),
        dependences=ROOTS_MATTER * is_long,
        mistakes=(
            Mistake("nothing were carried", lambda: expect_digits(sums[:size] % 10.0), CARRY),
            Mistake("the product were doubled", lambda: expect_digits(_to_digits(2 * product, size)), HALVE),
            Mistake("the first digit came first", lambda: expect_digits(value[::-1]), "Store digit k in `product[k]`."),
            Mistake("the last digit were not stored", lambda: expect_digits(np.append(value[:-1], np.nan)), LAST_DIGIT),
            Mistake(
                "no transform were inverse",
                lambda: expect_digits(_to_digits(_to_integer(sums[-np.arange(points)]), size)),
                "The last transform must be the inverse: exchange `re` and `im` in its call.",
            ),
        ),
    )


def reorder_roots(rng, roots):
    """Permute the roots but the first, which is 1 and multiplies nothing."""
    return np.concatenate((roots[:1], rng.permutation(roots[1:])))


def take_other_root(rng, roots):
    """Take the powers of another primitive root, whose quarter and eighth turns are the same."""
    points = 2 * len(roots)
    powers = np.arange(len(roots)) * (1 + 8 * rng.integers(1, points // 8)) % points
    return np.concatenate((roots, -roots))[powers]


WHY = "multiply by transforms that take their roots from there"
ROOTS_MATTER = (
    InputDependence(3, reorder_roots, "`roots` in another order", WHY),
    InputDependence(3, take_other_root, "the powers of another primitive root in `roots`", WHY, is_equal=True),
)


def _draw_digits(rng, count, nines):
    """Draw the digits of an integer, last digit first."""
    digits = rng.integers(0, 10, count)
    digits[-1] = max(1, digits[-1])
    return np.full(count, 9, np.int32) if nines else digits.astype(np.int32)


def _to_integer(digits):
    return sum(int(digit) * 10**place for place, digit in enumerate(digits))


def _to_digits(integer, size):
    """Return the last digits of an integer, last digit first."""
    return np.array([int(digit) for digit in reversed(str(integer).zfill(size)[-size:])], float)


EXERCISE = Exercise(
    title="Big integers",
    task="Write the digits of the product of two big integers. All numbers are written with their last digit first. "
    "The product has `a.size + b.size` digits, and the most significant may be 0. Multiply by transforms that use "
    "`roots`, and store each digit once.",
    points=4,
    function="big_product",
    make_launch=make_launch,
    sizes=(
        (5, 3, False),
        (40, 60, False),
        (1, 1, True),
        (33, 64, True),
        (512, 512, True),  # the largest sums and carries
    ),  # digits of both numbers; all of them nines
    random_sizes=(
        (range(100, 130), range(90, 126), (False,)),
        ((1, 2, 7), (200, 211), (False, True)),
        (range(500, 768), range(12, 257), (False,)),  # 1024 points, the most that the cell has room for
    ),
)
