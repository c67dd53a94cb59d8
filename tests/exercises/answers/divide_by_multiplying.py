"""Other answers to divide-by-multiplying."""

from . import Answer, right, shortcut, wrong

_HIGH = "np.uint64(n) * np.uint64(multiplier) >> np.uint64(32)"

_SUM = "(high + np.uint64(n)) >> np.uint64(shift)"

_LONG_WAY = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        n, mask, half = np.uint64(numbers[i]), np.uint64(0xFFFF), np.uint64(16)
        m = np.uint64(multiplier)
        low, high = n & mask, n >> half
        carry = (low * (m & mask) >> half) + low * (m >> half)
        middle = (carry & mask) + high * (m & mask)
        upper = (carry >> half) + high * (m >> half) + (middle >> half)
        quotients[i] = (upper + n) >> np.uint64(shift)
"""

DIVISOR_FOUND = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        d = (np.uint64(1) << np.uint64(32 + shift)) // whole
        d += np.uint64(d * whole < (np.uint64(1) << np.uint64(32 + shift)))
        quotients[i] = np.uint64(numbers[i]) // d
"""

DIVISOR_COUNTED = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        quotients[i] = np.uint64(numbers[i]) // max(np.uint64(1), (np.uint64(1) << np.uint64(32 + shift)) // whole)
"""

TWICE_THE_DIVISOR = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        most = ~np.uint64(0) if shift >= 31 else (np.uint64(1) << np.uint64(33 + shift))
        twice = most // whole
        twice += np.uint64(most - twice * whole > (whole >> np.uint64(1)))
        quotients[i] = np.uint64(numbers[i]) * np.uint64(2) // twice
"""

IN_FLOATS = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        part = np.float32(multiplier) / np.float32(2**32) + np.float32(1)
        quotients[i] = np.uint32(np.float32(numbers[i]) * part / np.float32(np.uint64(1) << np.uint64(shift)))
"""

VARIANTS = (
    Answer(
        "without the highest bit",
        "result",
        ((_SUM, "high >> np.uint64(shift)"),),
        mistake="the highest bit of the multiplier were left out",
    ),
    Answer(
        "a sum of 32 bits",
        "result",
        ((_SUM, "np.uint32(high + np.uint64(n)) >> np.uint32(shift)"),),
        mistake="the sum had 32 bits",
    ),
    Answer(
        "a product of 32 bits",
        "result",
        ((_HIGH, "np.uint64(np.uint32(n * multiplier)) >> np.uint64(32)"),),
        mistake="the product had 32 bits",
    ),
    Answer(
        "the lower half",
        "result",
        ((_HIGH, "np.uint64(n) * np.uint64(multiplier) & np.uint64(0xFFFFFFFF)"),),
        mistake="the lower half of the product were taken",
    ),
    Answer(
        "shifted before the sum",
        "result",
        ((_SUM, "(high >> np.uint64(shift)) + np.uint64(n)"),),
        mistake="n were added after the shift",
    ),
    Answer("no shift", "result", ((_SUM, "high + np.uint64(n)"),), mistake="nothing were shifted"),
    Answer(
        "one shift too many",
        "result",
        ((_SUM, "(high + np.uint64(n)) >> np.uint64(shift + 1)"),),
        mistake="the shift were larger by 1",
    ),
    Answer(
        "as below 2**31", "result", ((_HIGH, "np.uint64(np.uint32(n + n)) * np.uint64(multiplier) >> np.uint64(32)"),)
    ),
    Answer("signed", "result", ((_HIGH, "np.uint64(np.int64(n) * np.int64(multiplier) >> np.int64(32))"),)),
    Answer("in float64", "budget", ((_HIGH, "np.uint64(np.float64(n) * np.float64(multiplier) / 2**32)"),)),
    Answer("within 32 bits", "solved", ((_SUM, "(np.uint64(np.uint32(high)) + n) >> shift"),)),
    Answer("16 bits at a time", "solved", cell=_LONG_WAY),
)

RIGHT = (
    right("as a product", (">> np.uint64(32)\n", "// np.uint64(2**32)\n")),
    right(
        "the sum halved",
        ("(high + np.uint64(n)) >> np.uint64(shift)", "(high + n >> np.uint64(shift))"),
    ),
    right(
        "with the bit put back",
        (
            "np.uint64(n) * np.uint64(multiplier) >> np.uint64(32)",
            "np.uint64(n) * np.uint64(multiplier) >> np.uint64(32)\n        n = np.uint32(n)",
        ),
    ),
)

WRONG = (
    wrong("numbers below 2**31", ("n = numbers[i]", "n = numbers[i] & np.uint32(0x7FFFFFFF)")),
    wrong("all but the largest number", ("n = numbers[i]", "n = min(numbers[i], np.uint32(0xFFFFFFFE))")),
    wrong(
        "divisors that are no power of two",
        ("high + np.uint64(n)", "high + (np.uint64(n) if multiplier else np.uint64(0))"),
    ),
    wrong(
        "rounded to the nearest",
        (">> np.uint64(shift)", "+ (np.uint64(1) << np.uint64(shift) >> np.uint64(1)) >> np.uint64(shift)"),
    ),
    wrong("shifts of up to 16", ("np.uint64(shift)", "np.uint64(min(shift, 16))")),
    wrong("a multiplier of 31 bits", ("np.uint64(multiplier)", "np.uint64(multiplier & np.uint32(0xFFFFFFFE))")),
    wrong("the numbers that are published", ("if i < numbers.size:", "if i < min(numbers.size, 200):")),
    wrong(
        "a sum that overflows for the largest",
        ("(high + np.uint64(n))", "(high + np.uint64(n) & np.uint64(0xFFFFFFFF))"),
    ),
)

SHORTCUTS = (
    shortcut("the divisor found out", cell=DIVISOR_FOUND),
    shortcut("the divisor found out by counting", cell=DIVISOR_COUNTED),
    shortcut("twice the divisor found out", cell=TWICE_THE_DIVISOR),
    shortcut("by floats", cell=IN_FLOATS),
    shortcut(
        "one thread for all",
        (
            "    i = cuda.grid(1)\n    if i < numbers.size:\n",
            "    for i in range(numbers.size * (cuda.grid(1) == 0)):\n",
        ),
    ),
)
