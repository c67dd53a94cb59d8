"""Division, remainders and powers as numba-cuda computes them, where NumPy has other rules."""

import numpy as np

from labkit.simulator.functions import rounding


def floor_quotient(a, b):
    """Compute `a // b` of integers: 0 where b is 0, and where the least number is divided by -1."""
    quotient = a // b
    if a.dtype.kind == "u" or not np.any(b == -1):
        return quotient
    return np.where((b == -1) & (a == np.iinfo(a.dtype).min), a.dtype.type(0), quotient)[()]


def float_divmod(x, y):
    """Compute `divmod(x, y)` of floats: the remainder takes the sign of y.

    The GPU computes the remainder from the rounded quotient, |x| - floor(|x| / |y|) |y| with one rounding. It differs
    from the exact one where that quotient rounds up to a whole number.
    """
    one = x.dtype.type(1)
    remainder = rounding.fma(-np.floor(np.abs(x) / np.abs(y)), np.abs(y), np.abs(x))
    remainder = np.where(x < 0, -remainder, remainder).astype(x.dtype)
    quotient = (x - remainder) / y
    signs_differ = (remainder != 0) & ((y < 0) != (remainder < 0))
    quotient = np.where(signs_differ, quotient - one, quotient)
    signed_zero = np.where(y < 0, -0.0, 0.0).astype(x.dtype)
    modulo = np.where(signs_differ, remainder + y, np.where(remainder == 0, signed_zero, remainder))
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + one, whole)
    whole = np.where(quotient == 0, np.copysign(quotient * quotient, x) / y, whole)
    zero = y == 0
    return np.where(zero, x / y, whole)[()], np.where(zero, np.nan, modulo).astype(x.dtype)[()]


def float_quotient(x, y):
    return float_divmod(x, y)[0]


def float_remainder(x, y):
    return float_divmod(x, y)[1]


def integer_power(base, exponent):
    """Compute `base ** exponent` of integers; a negative exponent gives 0, except for bases 1, -1 and 0."""
    power = base ** np.where(exponent < 0, exponent & 1, exponent)  # of 1 and -1 the parity decides
    least = np.iinfo(power.dtype).min if power.dtype.kind == "i" else 0
    inverse = np.where(np.abs(base) == 1, power, np.where(base == 0, power.dtype.type(least), 0))
    return np.where(exponent < 0, inverse, power).astype(power.dtype)[()]


def repeated_power(base, exponent):
    """Compute `base ** exponent` of a float and an integer: by squaring, as numba does up to 65536."""
    if np.any(np.abs(exponent.astype(np.float64)) > 0x10000):
        return np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)[()]
    return power_by_squaring(base, exponent)


def power_by_squaring(base, exponent):
    """Compute `base ** exponent` of a float and an integer, rounded after every product, as libdevice's `powi`."""
    result, square, remaining = np.ones_like(base), base, np.abs(exponent.astype(np.int64))
    while np.any(remaining):
        result = np.where(remaining & 1, result * square, result)
        square = square * square
        remaining = remaining >> 1
    return np.where(exponent < 0, 1 / result, result).astype(base.dtype)[()]


def complex_power(a, b):
    """Compute `a ** b` of complex numbers in polar coordinates."""
    real = a.real.dtype
    size = np.hypot(a.real, a.imag)
    angle = np.arctan2(a.imag, a.real)
    length = np.power(size, b.real) / np.where(b.imag != 0, np.exp(angle * b.imag), 1)
    phase = angle * b.real + np.where(b.imag != 0, b.imag * np.log(size), 0)
    value = (length * np.cos(phase)).astype(real) + 1j * (length * np.sin(phase)).astype(real)
    value = np.where((a.real == 0) & (b.real == 0), 0, value)
    return np.where(b == 0, 1, value).astype(a.dtype)[()]
