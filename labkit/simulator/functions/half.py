"""float16 and bfloat16: `cuda.fp16` and `cuda.bf16`, and how lanes hold bfloat16.

NumPy has float16. A bfloat16 is the upper half of a float32, so lanes hold its values as float32 and round each result;
arrays hold the 16 bits. Names and meanings are those of CUDA's Math API (half and bfloat16).
"""

import numpy as np

from labkit.simulator.functions import rounding
from labkit.simulator.functions.rounding import INTEGER_ROUNDING, MODES
from labkit.simulator.functions.table import Function, cases, from_numpy

# --- bfloat16 ---


def to_bfloat16(value, mode="rn"):
    """Round a number to bfloat16, as a float32."""
    whole = value.dtype.kind in "iub"
    wide = rounding.round_to_odd(*rounding.integer_as_two_floats(value)) if whole else value.astype(np.float64)
    bits = np.asarray(rounding.round_to_narrower(wide, np.float32, "rz")).view(np.uint32) & np.uint32(0xFFFF0000)
    inner, outer = bits.view(np.float32), (bits + np.uint32(0x10000)).view(np.float32)  # toward zero, and away from it
    if mode == "rn":
        limit = np.where(
            np.isinf(outer), np.copysign(2.0**128, wide), outer.astype(np.float64)
        )  # infinity stands where 2^128 would
        to_inner, to_outer = np.abs(wide - inner), np.abs(limit - wide)
        odd = (bits >> np.uint32(16)) & np.uint32(1) == 1
        rounds_away = (to_outer < to_inner) | (to_outer == to_inner) & odd
    else:
        rounds_away = (wide != inner) & (wide < 0 if mode == "rd" else wide > 0 if mode == "ru" else False)
    return np.where(np.isfinite(wide), np.where(rounds_away, outer, inner), wide).astype(np.float32)[()]


def from_bits(bits):
    """Return bfloat16 values, as float32, from their 16 bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bits(value):
    """Return the 16 bits of each bfloat16 value."""
    return (np.asarray(value).view(np.uint32) >> np.uint32(16)).astype(np.uint16)[()]


# --- functions of both types ---

IN_FLOAT64 = {
    **from_numpy("cos exp exp2 log log10 log2 sin sqrt tanh ceil floor rint trunc"),
    "exp10": lambda x: np.power(10.0, x),
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh_approx": np.tanh,
}
COMPARED = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "ne": lambda x, y: (x != y) & ~np.isnan(x) & ~np.isnan(y),
}
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
# the C type of CUDA's names, numba's name of it
C_INTEGERS = {
    "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64",
}  # fmt: skip


def _unordered(compare):
    """Return the comparison that is also true where either side is NaN."""
    return lambda x, y: compare(x, y) | np.isnan(x) | np.isnan(y)


def _clamped(x):
    return np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0))


def _with_signed_zeros(choose):
    """Return fmin or fmax with -0 less than +0."""

    def chosen_number(x, y):
        equal_zeros = (x == 0) & (y == 0)
        negative = np.signbit(x) | np.signbit(y) if choose is np.fmin else np.signbit(x) & np.signbit(y)
        return np.where(equal_zeros, np.where(negative, -0.0, 0.0), choose(x, y))

    return chosen_number


def _propagating_nan(choose):
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, _with_signed_zeros(choose)(x, y))


def _to_integer(mode, dtype):
    limits = np.iinfo(dtype)

    def converted(x):
        nearest = INTEGER_ROUNDING[mode](x.astype(np.float32))
        if limits.bits == 8:  # these stop at the ends of the range, unlike a cast
            nearest = np.clip(nearest, limits.min, limits.max)
        return rounding.to_integer(nearest, dtype)

    return converted


def _family(kind, rounded, bits):
    """Yield (CUDA's name without underscores, signature, what lanes do, FLOPs) of each function of a 16-bit type.

    `rounded(value64, mode)` rounds to the type; `bits` are the functions to and from its 16 bits.
    """

    def fused(x, y, z):
        x, y, z = (v.astype(np.float64) for v in (x, y, z))
        return rounding.round_to_odd(*rounding.two_sum(x * y, z))

    one, two, three = (f"{kind}({', '.join([kind] * n)})" for n in (1, 2, 3))
    for name, run in IN_FLOAT64.items():
        yield f"h{name}", one, lambda x, run=run: rounded(run(x.astype(np.float64))), 0
    yield "habs", one, np.abs, 0
    yield "hneg", one, np.negative, 0
    yield "hdiv", two, lambda x, y: rounded(x.astype(np.float64) / y.astype(np.float64)), 0
    for name, run in ARITHMETIC.items():

        def exact(x, y, run=run):
            return run(x.astype(np.float64), y.astype(np.float64))

        for ending in ("", "_rn"):
            yield f"h{name}{ending}", two, lambda x, y, exact=exact: rounded(exact(x, y)), 1
        yield f"h{name}_sat", two, lambda x, y, exact=exact: rounded(_clamped(exact(x, y))), 1
    yield "hfma", three, lambda x, y, z: rounded(fused(x, y, z)), 2
    yield "hfma_sat", three, lambda x, y, z: rounded(_clamped(fused(x, y, z))), 2
    yield "hfma_relu", three, lambda x, y, z: rounded(_relu(fused(x, y, z))), 2
    for name, run in COMPARED.items():
        yield f"h{name}", f"boolean({kind}, {kind})", run, 0
        yield f"h{name}u", f"boolean({kind}, {kind})", _unordered(run), 0
    for name, run in (("max", np.fmax), ("min", np.fmin)):
        yield f"h{name}", two, _with_signed_zeros(run), 0
        yield f"h{name}_nan", two, _propagating_nan(run), 0
    yield "hisnan", f"boolean({kind})", np.isnan, 0
    yield "hisinf", f"int32({kind})", lambda x: np.where(np.isinf(x), np.sign(x), 0).astype(np.int32), 0
    to_own, from_own = bits
    for mode in ("", "_rn", "_rz", "_rd", "_ru"):
        yield f"float2{{}}{mode}", f"{kind}(float32)", _rounding_to(rounded, mode), 0
    yield "double2{}", f"{kind}(float64)", _rounding_to(rounded, ""), 0
    yield "{}2float", f"float32({kind})", lambda x: x.astype(np.float32), 0
    yield "{}2char_rz", f"int8({kind})", _to_integer("rz", np.int8), 0
    yield "{}2uchar_rz", f"uint8({kind})", _to_integer("rz", np.uint8), 0
    for name, integer in C_INTEGERS.items():
        for mode in MODES:
            yield f"{name}2{{}}_{mode}", f"{kind}({integer})", _rounding_to(rounded, f"_{mode}"), 0
            yield f"{{}}2{name}_{mode}", f"{integer}({kind})", _to_integer(mode, np.dtype(integer)), 0
    for name, integer in (("short", "int16"), ("ushort", "uint16")):
        yield f"{name}_as_{{}}", f"{kind}({integer})", lambda x: from_own(np.asarray(x).view(np.uint16)), 0
        yield f"{{}}_as_{name}", f"{integer}({kind})", lambda x, d=integer: np.asarray(to_own(x)).view(d), 0


def _relu(x):
    """Return max(x, 0), and NaN for NaN, as CUDA's relu variants."""
    return np.where(np.isnan(x), x, np.maximum(x, 0.0))


def _rounding_to(rounded, mode):
    return lambda x: rounded(x, mode.lstrip("_") or "rn")


def to_float16(value, mode="rn"):
    if value.dtype.kind in "iu":
        return rounding.from_integer(value, np.float16, mode)
    return rounding.round_to_narrower(value.astype(np.float64), np.float16, mode)


# --- the two tables ---

# The functions that `cuda.fp16` has under their plain names; the others carry two underscores in front.
PLAIN_HALF = {"abs", "add", "div", "eq", "fma", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "neg", "sub"}
NUMBA_NAMES = {"float": "float32", "double": "float64", "char": "int8", "uchar": "uint8", **C_INTEGERS}


def _half_names(name):
    plain = name.format("half")
    if "half" not in plain and plain[1:] in IN_FLOAT64:
        return (plain,)
    return (plain, f"__{plain}") if plain[1:] in PLAIN_HALF else (f"__{plain}",)


def _bfloat16_names(name):
    """Return CUDA's name, the one with underscores, and numba's, such as `float32_to_bfloat16_rn`."""
    cuda_name = name.format("bfloat16")
    for separator, joined in (("2", "_to_"), ("_as_", "_as_")):
        left, _, right = cuda_name.partition(separator)
        right, underscore, mode = right.partition("_")
        if right and "{}" in name:
            left, right = NUMBA_NAMES.get(left, left), NUMBA_NAMES.get(right, right)
            return cuda_name, f"__{cuda_name}", f"{left}{joined}{right}{underscore}{mode}"
    if cuda_name[1:] in IN_FLOAT64:
        return (cuda_name,)
    return cuda_name, f"__{cuda_name}"


def _table():
    rows = {}
    half = _family("float16", to_float16, (lambda x: np.asarray(x).view(np.uint16), lambda b: b.view(np.float16)))
    brain = _family("bfloat16", to_bfloat16, (to_bits, from_bits))
    for module, family, names in (("fp16", half, _half_names), ("bf16", brain, _bfloat16_names)):
        for name, signature, run, flops in family:
            for full in names(name):
                path = f"cuda.{module}.{full}"
                rows[path] = Function(path, run, cases=cases(signature), flops=flops)
    return rows


FUNCTIONS = _table()
