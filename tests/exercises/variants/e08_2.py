"""Other answers to exercise 08.2."""

from . import Variant

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

VARIANTS = (
    Variant("without the highest bit", "result", ((_SUM, "high >> np.uint64(shift)"),)),
    Variant("a sum of 32 bits", "result", ((_SUM, "np.uint32(high + np.uint64(n)) >> np.uint32(shift)"),)),
    Variant("a product of 32 bits", "result", ((_HIGH, "np.uint64(np.uint32(n * multiplier)) >> np.uint64(32)"),)),
    Variant("the lower half", "result", ((_HIGH, "np.uint64(n) * np.uint64(multiplier) & np.uint64(0xFFFFFFFF)"),)),
    Variant("shifted before the sum", "result", ((_SUM, "(high >> np.uint64(shift)) + np.uint64(n)"),)),
    Variant("no shift", "result", ((_SUM, "high + np.uint64(n)"),)),
    Variant("one shift too many", "result", ((_SUM, "(high + np.uint64(n)) >> np.uint64(shift + 1)"),)),
    Variant(
        "as below 2**31", "result", ((_HIGH, "np.uint64(np.uint32(n + n)) * np.uint64(multiplier) >> np.uint64(32)"),)
    ),
    Variant("signed", "result", ((_HIGH, "np.uint64(np.int64(n) * np.int64(multiplier) >> np.int64(32))"),)),
    Variant("in float64", "budget", ((_HIGH, "np.uint64(np.float64(n) * np.float64(multiplier) / 2**32)"),)),
    Variant("within 32 bits", "solved", ((_SUM, "(np.uint64(np.uint32(high)) + n) >> shift"),)),
    Variant("16 bits at a time", "solved", cell=_LONG_WAY),
)
