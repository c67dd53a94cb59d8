"""Python's `math`, and `cuda.fma` and `cuda.cbrt`, as numba-cuda types them.

Values are computed in float64 and rounded to the result's type, within CUDA's bounds (ulp.py) for float32 and float16.
"""

import math

import numpy as np

from labkit.simulator.functions import rounding
from labkit.simulator.functions.arithmetic import power_by_squaring
from labkit.simulator.functions.special import erf, erfc, gamma, lgamma
from labkit.simulator.functions.table import Function, cases, from_numpy


def in_float64(function):
    """Return `function` computed in float64, whatever the arguments' types."""
    return lambda *values: function(*(v.astype(np.float64) for v in values))


REAL = cases("float64(int64)", "float64(uint64)", "float32(float32)", "float64(float64)")
REAL_OR_HALF = (*REAL, *cases("float16(float16)"))
REALS = cases(
    "float64(int64, int64)", "float64(uint64, uint64)", "float32(float32, float32)", "float64(float64, float64)"
)
FLOATS = cases("float32(float32, float32)", "float64(float64, float64)")

# What lanes do, in float64; numba types the second few for float16 as well.
OF_REALS = {
    **from_numpy("acos acosh asin asinh atan atanh cosh expm1 log1p sinh tan tanh"),
    "erf": erf,
    "erfc": erfc,
    "gamma": gamma,
    "lgamma": lgamma,
}
OF_HALVES_TOO = from_numpy("cos exp exp2 log log10 log2 sin")

# name: (typing, what lanes do)
ONE_ARGUMENT = {
    **{name: (REAL, in_float64(run)) for name, run in OF_REALS.items()},
    **{name: (REAL_OR_HALF, in_float64(run)) for name, run in OF_HALVES_TOO.items()},
    **{name: (REAL_OR_HALF, run) for name, run in from_numpy("sqrt ceil floor trunc fabs").items()},
    # numba multiplies by a constant of the argument's own type
    "degrees": (REAL, lambda x: x * _like(x, 180 / math.pi)),
    "radians": (REAL, lambda x: x * _like(x, math.pi / 180)),
}


def _like(x, constant):
    return x.dtype.type(constant) if x.dtype.kind == "f" else constant


def _power(x, y):
    if y.dtype.kind == "i":
        return power_by_squaring(x, y)
    return np.power(x.astype(np.float64), y.astype(np.float64))


FUNCTIONS = {
    f"math.{name}": Function(f"math.{name}", run, cases=typing) for name, (typing, run) in ONE_ARGUMENT.items()
}
_OTHERS = [
    *(Function(f"math.{n}", run, typed_as=getattr(math, n)) for n, run in from_numpy("isnan isinf isfinite").items()),
    Function("math.atan2", in_float64(np.arctan2), cases=REALS),
    Function("math.hypot", in_float64(np.hypot), cases=REALS),
    *(Function(f"math.{name}", run, cases=FLOATS) for name, run in from_numpy("copysign fmod nextafter").items()),
    Function("math.remainder", lambda x, y: remainder_and_quotient(x, y)[0], cases=FLOATS),
    Function(
        "math.pow",
        _power,
        cases=(*FLOATS, *cases("float32(float32, int32)", "float64(float64, int32)")),
    ),
    Function("math.frexp", np.frexp, cases=cases("float32, int32(float32)", "float64, int32(float64)")),
    Function("math.ldexp", np.ldexp, cases=cases("float32(float32, int32)", "float64(float64, int32)")),
    Function("math.modf", lambda x: np.modf(x), cases=cases("float64, float64(float64)", "float32, float32(float32)")),
    Function("cuda.fma", rounding.fma, cases=cases(*(f"{t}({t}, {t}, {t})" for t in ("float32", "float64"))), flops=2),
    Function("cuda.cbrt", in_float64(np.cbrt), cases=cases("float32(float32)", "float64(float64)")),
]
FUNCTIONS |= {function.name: function for function in _OTHERS}


def remainder_and_quotient(x, y):
    """Compute the IEEE remainder x - n y, n = x / y rounded to nearest even, and n's low three bits with its sign."""
    rest, quotient = _remainders(x, y)
    return np.asarray(rest).astype(x.dtype), np.asarray(quotient).astype(np.int32)


def _one_remainder(x, y):
    try:
        rest = math.remainder(x, y)
    except ValueError:
        return math.nan, 0
    if math.isinf(y) or math.isnan(rest):
        return rest, 0
    # x and y are exact ratios of integers, so n is exact too
    (a, b), (c, d), (e, f) = x.as_integer_ratio(), y.as_integer_ratio(), rest.as_integer_ratio()
    whole = abs((a * f - e * b) * d // (b * f * c))
    return rest, (whole % 8) * (-1 if (x < 0) != (y < 0) else 1)


_remainders = np.frompyfunc(lambda x, y: _one_remainder(float(x), float(y)), 2, 2)
