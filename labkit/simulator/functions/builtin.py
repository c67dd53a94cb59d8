"""Python's functions of one or two numbers: `abs`, `round`, `int`, `float`, `divmod`."""

import numpy as np

from labkit.simulator.functions import rounding
from labkit.simulator.functions.arithmetic import float_divmod, floor_quotient
from labkit.simulator.functions.table import Function


def round_number(x, digits=None):
    """Round halves to even for `round(x)`; for `round(x, digits)` scale in float64 and back."""
    if digits is None:
        return rounding.to_integer(np.rint(x.astype(np.float64)), np.int64)
    wide = x.astype(np.float64)
    high = np.power(10.0, np.maximum(np.abs(digits) - 22, 0).astype(np.float64))
    low = np.power(10.0, np.minimum(np.abs(digits), 22).astype(np.float64))
    up = digits >= 0
    scaled = np.where(up, wide * low * high, wide / low / high)
    whole = rounding.to_integer(np.rint(scaled), np.int64).astype(np.float64)
    result = np.where(up, whole / high / low, whole * low * high)
    return np.where(np.isfinite(x) & np.isfinite(scaled), result, x)


def to_int(x):
    return x if x.dtype.kind in "iub" else rounding.cast_to_integer(x, np.int64)


def quotient_and_remainder(a, b):
    if a.dtype.kind in "iu":
        return floor_quotient(a, b), np.where(b == -1, a.dtype.type(0), a % b)
    return float_divmod(a, b)


FUNCTIONS = {
    "abs": Function("abs", np.abs, typed_as=abs),
    "round": Function("round", round_number, typed_as=round),
    "int": Function("int", to_int, typed_as=int),
    "float": Function("float", lambda x: x, typed_as=float),
    "divmod": Function("divmod", quotient_and_remainder, typed_as=divmod),
}
