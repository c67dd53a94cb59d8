"""`cuda.libdevice`: CUDA's scalar functions by their own names, each with one signature (libdevice User's Guide).

Values that C returns through pointers come as a tuple. Names end in `f` for float32, and in `_rn _rz _rd _ru` for a
rounding mode. The fast variants are computed to full precision; ulp.py has their published errors.
"""

import numpy as np

from labkit.simulator.functions import bits, rounding, special
from labkit.simulator.functions.arithmetic import power_by_squaring
from labkit.simulator.functions.mathematics import OF_HALVES_TOO, OF_REALS, in_float64, remainder_and_quotient
from labkit.simulator.functions.rounding import INTEGER_ROUNDING, MODES
from labkit.simulator.functions.table import Function, cases, from_numpy

# --- functions that exist for float64 and, with an `f` after the name, for float32 ---


def half_away(x):
    """Round halves away from zero, as C's `round`."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole).astype(x.dtype)


def logb(x):
    exponent = np.frexp(x)[1].astype(x.dtype) - 1
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent, np.abs(x)))


def ilogb(x):
    limits = np.iinfo(np.int32)
    return np.where(
        x == 0, limits.min, np.where(np.isfinite(x), np.frexp(x)[1] - 1, np.where(np.isnan(x), limits.min, limits.max))
    )


def sin_pi(x):
    """Compute sin(pi x), exact where x is a multiple of a half."""
    rest = np.fmod(x, 2.0)
    nearest = np.rint(2 * rest)
    angle = np.pi * (rest - nearest / 2)
    quarter = np.where(np.isfinite(nearest), nearest, 0).astype(np.int64) % 4
    value = np.choose(quarter, [np.sin(angle), np.cos(angle), -np.sin(angle), -np.cos(angle)])
    value = np.where((angle == 0) & (quarter % 2 == 0), np.copysign(0.0, x), value)
    return np.where(np.isfinite(x), value, np.nan)


def cos_pi(x):
    """Compute cos(pi x), exact where x is a multiple of a half."""
    rest = np.fmod(np.abs(x), 2.0)
    nearest = np.rint(2 * rest)
    angle = np.pi * (rest - nearest / 2)
    quarter = np.where(np.isfinite(nearest), nearest, 0).astype(np.int64) % 4
    value = np.choose(quarter, [np.cos(angle), -np.sin(angle), -np.cos(angle), np.sin(angle)]) + 0.0
    return np.where(np.isfinite(x), value, np.nan)


def exp10(x):
    return np.power(10.0, x)


def positive_difference(x, y):
    return np.where(np.isnan(x) | np.isnan(y), x + y, np.where(x > y, x - y, x.dtype.type(0)))


IN_FLOAT64 = {
    **{name: run for name, run in {**OF_REALS, **OF_HALVES_TOO}.items() if name != "gamma"},  # "tgamma" in C
    "cbrt": np.cbrt,
    "cospi": cos_pi,
    **{name: getattr(special, name) for name in "erfcinv erfcx erfinv j0 j1 normcdf normcdfinv y0 y1".split()},
    "exp10": exp10,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sinpi": sin_pi,
    "tgamma": special.gamma,
}
IN_OWN_TYPE = {**from_numpy("ceil fabs floor rint sqrt trunc"), "logb": logb, "nearbyint": np.rint, "round": half_away}
OF_TWO = {
    **from_numpy("copysign fmax fmin fmod nextafter"),
    **{name: in_float64(run) for name, run in from_numpy("atan2 hypot pow").items()},
    "fdim": positive_difference,
    "remainder": lambda x, y: remainder_and_quotient(x, y)[0],
}
WITH_INTEGER = {"ldexp": np.ldexp, "powi": power_by_squaring, "scalbn": np.ldexp}
OF_ORDER_AND_X = {"jn": special.jn, "yn": special.yn}
TUPLES = {
    "{0}, int32({0})": {"frexp": np.frexp},
    "{0}, int32({0}, {0})": {"remquo": remainder_and_quotient},
    "{0}, {0}({0})": {
        "modf": np.modf,
        "sincos": lambda x: (in_float64(np.sin)(x), in_float64(np.cos)(x)),
        "sincospi": lambda x: (sin_pi(x.astype(np.float64)), cos_pi(x.astype(np.float64))),
    },
}

# --- names that exist once ---


def bits_as(dtype):
    return lambda x: np.asarray(x).view(dtype)


def saturate(x):
    """Clamp x to [0, 1]; NaN gives 0."""
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype)


def fast_divide(x, y):
    """Compute x / y; beyond 2**126 the reciprocal of y is 0 (PTX ISA, `div.approx.f32`)."""
    far = (np.abs(y) > 2.0**126) & np.isfinite(y)
    return np.where(far, np.where(np.isfinite(x), 0, np.nan), x / y).astype(np.float32)


SINGLE = {
    "float32(float32)": {
        **{f"fast_{name}f": in_float64(run) for name, run in from_numpy("cos exp log10 log2 log sin tan").items()},
        "fast_exp10f": in_float64(exp10),
        "frsqrt_rn": in_float64(IN_FLOAT64["rsqrt"]),
        "saturatef": saturate,
    },
    "float32(float32, float32)": {"fast_fdividef": fast_divide, "fast_powf": in_float64(np.power)},
    "float32, float32(float32)": {"fast_sincosf": TUPLES["{0}, {0}({0})"]["sincos"]},
    "int32(float32)": {
        "finitef": np.isfinite,
        "isinff": np.isinf,
        "isnanf": np.isnan,
        "signbitf": np.signbit,
        "ilogbf": ilogb,
        "float_as_int": bits_as(np.int32),
    },
    "int32(float64)": {
        "isfinited": np.isfinite,
        "isinfd": np.isinf,
        "isnand": np.isnan,
        "signbitd": np.signbit,
        "ilogb": ilogb,
        "double2hiint": lambda x: (np.asarray(x).view(np.int64) >> 32).astype(np.int32),
        "double2loint": lambda x: np.asarray(x).view(np.int64).astype(np.int32),
    },
    "int64(float32)": {
        "llrintf": lambda x: rounding.to_integer(np.rint(x), np.int64),
        "llroundf": lambda x: rounding.to_integer(half_away(x), np.int64),
    },
    "int64(float64)": {
        "llrint": lambda x: rounding.to_integer(np.rint(x), np.int64),
        "llround": lambda x: rounding.to_integer(half_away(x), np.int64),
        "double_as_longlong": bits_as(np.int64),
    },
    "int16(float32)": {"float2half_rn": lambda x: np.asarray(x.astype(np.float16)).view(np.int16)},
    "float32(int16)": {"half2float": lambda x: np.asarray(x).view(np.float16)},
    "float32(int32)": {"int_as_float": bits_as(np.float32)},
    "float64(int32)": {
        "int2double_rn": lambda x: x.astype(np.float64),
        "uint2double_rn": lambda x: bits.unsigned(x).astype(np.float64),
    },
    "float64(int64)": {"longlong_as_double": bits_as(np.float64)},
    "float64(int32, int32)": {
        "hiloint2double": lambda high, low: ((high.astype(np.int64) << 32) | bits.unsigned(low).astype(np.int64)).view(
            np.float64
        )
    },
    **bits.LIBDEVICE,
}

# --- names with a rounding mode ---

# operation: (number of arguments, what it does, FLOPs); named after the letter of the type, as in `fadd_rd`
ARITHMETIC = {
    "add": (2, rounding.add, 1),
    "sub": (2, rounding.subtract, 1),
    "mul": (2, rounding.multiply, 1),
    "div": (2, rounding.divide, 0),
    "rcp": (1, rounding.reciprocal, 0),
    "sqrt": (1, rounding.sqrt, 0),
}
# name of the C type, its numba type in libdevice's declarations, its meaning
INTEGER_TYPES = {
    "int": ("int32", np.int32),
    "uint": ("int32", np.uint32),
    "ll": ("int64", np.int64),
    "ull": ("int64", np.uint64),
}


def _to_integer(dtype, kept_as, mode):
    return lambda x: np.asarray(rounding.to_integer(INTEGER_ROUNDING[mode](x), dtype)).view(kept_as)


def _from_integer(dtype, target, mode):
    return lambda x: rounding.from_integer(np.asarray(x).view(dtype), target, mode)


def _in_mode(operation, mode):
    return lambda *values: operation(*values, mode)


def _table():
    rows = {}

    def row(name, signature, run, flops=0):
        rows[f"cuda.libdevice.{name}"] = Function(f"cuda.libdevice.{name}", run, cases=cases(signature), flops=flops)

    for ending, kind in (("", "float64"), ("f", "float32")):
        for name, run in IN_FLOAT64.items():
            row(name + ending, f"{kind}({kind})", in_float64(run))
        for name, run in IN_OWN_TYPE.items():
            row(name + ending, f"{kind}({kind})", run)
        for name, run in OF_TWO.items():
            row(name + ending, f"{kind}({kind}, {kind})", run)
        for name, run in WITH_INTEGER.items():
            row(name + ending, f"{kind}({kind}, int32)", run)
        for name, run in OF_ORDER_AND_X.items():
            row(name + ending, f"{kind}(int32, {kind})", lambda n, x, run=run: run(n, x.astype(np.float64)))
        for signature, functions in TUPLES.items():
            for name, run in functions.items():
                row(name + ending, signature.format(kind), run)
        row("fma" + ending, f"{kind}({kind}, {kind}, {kind})", rounding.fma, 2)
        for mode in MODES:
            row(f"fma{ending}_{mode}", f"{kind}({kind}, {kind}, {kind})", _in_mode(rounding.fma, mode), 2)
            for name, (count, run, flops) in ARITHMETIC.items():
                if (name, kind) != ("sub", "float64"):  # numba-cuda lacks `dsub`
                    signature = f"{kind}({', '.join([kind] * count)})"
                    row(f"{'f' if ending else 'd'}{name}_{mode}", signature, _in_mode(run, mode), flops)
    for signature, functions in SINGLE.items():
        for name, run in functions.items():
            row(name, signature, run)
    for mode in MODES:
        row(
            f"double2float_{mode}",
            "float32(float64)",
            lambda x, mode=mode: rounding.round_to_narrower(x, np.float32, mode),
        )
        for name, (kept, dtype) in INTEGER_TYPES.items():
            row(f"float2{name}_{mode}", f"{kept}(float32)", _to_integer(dtype, kept, mode))
            row(f"double2{name}_{mode}", f"{kept}(float64)", _to_integer(dtype, kept, mode))
            row(f"{name}2float_{mode}", f"float32({kept})", _from_integer(dtype, np.float32, mode))
            if kept == "int64":
                row(f"{name}2double_{mode}", f"float64({kept})", _from_integer(dtype, np.float64, mode))
    return rows


FUNCTIONS = _table()
