"""IEEE arithmetic in every rounding mode: `rn` to nearest even, `rz` toward zero, `rd` down, `ru` up.

A narrow result (float32, float16, bfloat16) is computed in float64 and rounded once. Where float64 itself rounds, the
value is first rounded to odd, which keeps the second rounding correct in every mode. (Boldo and Melquiond, "Emulation
of a FMA and correctly rounded sums", IEEE Transactions on Computers 57, 2008.) float64 results in directed modes take
the sign of the error from exact fractions.
"""

import math
from fractions import Fraction

import numpy as np

MODES = ("rn", "rz", "rd", "ru")
INTEGER_ROUNDING = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


# --- to integers ---


def to_integer(value, dtype):
    """Convert a whole floating-point number to an integer, as the GPU's `cvt`.

    Out of range gives the nearest end of the range. NaN gives 0, or 1 << (width - 1) if the source is float64 or the
    target has 64 bits (PTX ISA, `cvt`). 8-bit targets are converted to 16 bits, of which the low half is kept, except
    from float16.
    """
    dtype = np.dtype(dtype)
    if dtype.itemsize == 1 and value.dtype.itemsize > 2:
        return to_integer(value, np.int16 if dtype.kind == "i" else np.uint16).astype(dtype)
    limits = np.iinfo(dtype)
    wide = value.astype(np.float64)
    inside = (wide >= float(limits.min)) & (wide < float(limits.max) + (dtype.itemsize < 8))
    whole = np.where(inside, wide, 0).astype(dtype)
    if np.all(inside):
        return whole[()]
    whole = np.where(wide >= float(limits.max), dtype.type(limits.max), whole)
    whole = np.where(wide < float(limits.min), dtype.type(limits.min), whole)
    if value.dtype == np.float64 or dtype.itemsize == 8:
        nan_result = dtype.type(limits.min if dtype.kind == "i" else limits.max // 2 + 1)
        whole = np.where(np.isnan(wide), nan_result, whole)
    return whole[()]


def cast_to_integer(value, dtype):
    """Cast a float to an integer as numba does: float16 to the nearest, the others toward zero."""
    return to_integer(np.rint(value) if value.dtype.itemsize == 2 else np.trunc(value), dtype)


# --- to narrower floats ---


def two_sum(a, b):
    """Return the nearest float to a + b, and the rest of the exact sum (Knuth)."""
    total = a + b
    b_rounded = total - a
    return total, (a - (total - b_rounded)) + (b - b_rounded)


def round_to_odd(value, error):
    """Round value + error to odd, where `value` is the nearest float64 to that sum."""
    even = (np.asarray(value).view(np.int64) & 1) == 0
    change = even & (error != 0) & np.isfinite(value)
    return np.where(change, np.nextafter(value, np.where(error > 0, np.inf, -np.inf)), value)


def adjust_to_mode(nearest, error, mode):
    """Return the result in a mode, from the nearest one and the sign of exact - nearest."""
    if mode == "rn":
        return nearest
    down, up = nearest.dtype.type(-np.inf), nearest.dtype.type(np.inf)
    if mode == "rz":
        lower, upper = (error < 0) & (nearest > 0), (error > 0) & (nearest < 0)
    else:
        lower, upper = (error < 0) & (mode == "rd"), (error > 0) & (mode == "ru")
    down_or_same = np.where(lower, np.nextafter(nearest, down), nearest)
    return np.where(upper, np.nextafter(nearest, up), down_or_same)


def round_to_narrower(value, dtype, mode="rn"):
    """Round a float64 to float32 or float16."""
    nearest = np.asarray(value.astype(dtype))
    difference = value - nearest.astype(np.float64)
    difference = np.where(np.isinf(nearest), np.where(nearest > 0, -1.0, 1.0) * np.isfinite(value), difference)
    return adjust_to_mode(nearest, difference, mode)


def integer_as_two_floats(value):
    """Return an integer as the sum of two float64: the nearest one, and the rest."""
    value = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64)
    return two_sum((value >> 32).astype(np.float64) * 2.0**32, (value & 0xFFFFFFFF).astype(np.float64))


def from_integer(value, dtype, mode="rn"):
    """Round an integer to a float."""
    total, error = integer_as_two_floats(value)
    if np.dtype(dtype) == np.float64:
        return adjust_to_mode(np.asarray(total), error, mode)
    return round_to_narrower(round_to_odd(total, error), dtype, mode)


def add_rounded_once(a, b, dtype, mode="rn"):
    """Round a + b of values that float64 holds, once; x - x is -0 when rounding down."""
    total, error = two_sum(a.astype(np.float64), b.astype(np.float64))
    if mode == "rd":
        total = np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)
    if np.dtype(dtype) == np.float64:
        overflow = np.isinf(total) & np.isfinite(a) & np.isfinite(b)
        return adjust_to_mode(np.asarray(total), np.where(overflow, -np.sign(total), error), mode)
    return round_to_narrower(round_to_odd(total, error), dtype, mode)


# --- operations ---


def add(a, b, mode="rn"):
    return add_rounded_once(a, b, a.dtype, mode)


def subtract(a, b, mode="rn"):
    return add_rounded_once(a, -b, a.dtype, mode)


def multiply(a, b, mode="rn"):
    if mode == "rn":
        return a * b
    if a.dtype == np.float64:
        return adjust_to_mode(np.asarray(a * b), _error(lambda r, a, b: a * b - r, a * b, a, b), mode)
    return round_to_narrower(a.astype(np.float64) * b.astype(np.float64), a.dtype, mode)


def divide(a, b, mode="rn"):
    if mode == "rn":
        return a / b
    if a.dtype == np.float64:
        return adjust_to_mode(np.asarray(a / b), _error(_quotient, a / b, a, b), mode)
    return round_to_narrower(a.astype(np.float64) / b.astype(np.float64), a.dtype, mode)


def reciprocal(a, mode="rn"):
    return divide(np.ones_like(a), a, mode)


def sqrt(a, mode="rn"):
    if mode == "rn":
        return np.sqrt(a)
    if a.dtype == np.float64:
        return adjust_to_mode(np.asarray(np.sqrt(a)), _error(lambda r, a: a - r * r, np.sqrt(a), a), mode)
    return round_to_narrower(np.sqrt(a.astype(np.float64)), a.dtype, mode)


def fma(a, b, c, mode="rn"):
    """Compute a * b + c, rounded once."""
    if a.dtype != np.float64:
        return add_rounded_once(a.astype(np.float64) * b.astype(np.float64), c, a.dtype, mode)
    nearest = _fused64(a, b, c)
    if mode == "rd":
        nearest = np.where((nearest == 0) & (np.signbit(a) ^ np.signbit(b) | np.signbit(c)), -0.0, nearest)
    error = 0 if mode == "rn" else _error(lambda r, a, b, c: a * b + c - r, nearest, a, b, c)
    return adjust_to_mode(nearest, error, mode)


# --- float64, exactly ---


def _fused64(a, b, c):
    """Return the nearest float64 to a * b + c, by error-free sums and products; by fractions at extreme exponents."""
    product, low = two_product(a, b)
    high, error = two_sum(c, low)
    total, rest = two_sum(product, high)
    result = np.asarray(total + round_to_odd(*two_sum(rest, error)))
    sizes = [np.abs(x) for x in (a, b, c, product)]
    safe = (product == 0) & ((a == 0) | (b == 0)) | (sizes[3] > 1e-280)
    for size in sizes:
        safe = safe & (size < 1e280)
    safe = np.where(np.isfinite(a) & np.isfinite(b) & np.isfinite(c), safe, True)
    plain = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (product == 0)
    result = np.where(plain, a * b + c, result)
    if np.all(safe):
        return result
    exact = np.frompyfunc(_fused_exactly, 3, 1)(a, b, c)
    return np.where(safe, result, np.asarray(exact, np.float64))


def two_product(a, b):
    """Return the nearest float64 to a * b, and the rest (Dekker, with Veltkamp's splitting)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a):
    shifted = 134217729.0 * a  # 2**27 + 1: the high half keeps 26 of the 53 bits
    high = shifted - (shifted - a)
    return high, a - high


def _fused_exactly(a, b, c):
    if not all(map(math.isfinite, (a, b, c))):
        return 0.0
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _quotient(r, a, b):
    return (a - r * b) * b


def _error(difference, nearest, *operands):
    """Return the sign of exact - nearest in each lane; `difference` computes it from fractions."""

    def sign(r, *values):
        if math.isnan(r) or not all(map(math.isfinite, values)) or (difference is _quotient and values[1] == 0):
            return 0
        if math.isinf(r):
            return -1 if r > 0 else 1
        error = difference(Fraction(r), *map(Fraction, values))
        return (error > 0) - (error < 0)

    return np.frompyfunc(sign, 1 + len(operands), 1)(nearest, *operands)
