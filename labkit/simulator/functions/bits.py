"""Functions of an integer's bits: `cuda.popc brev clz ffs selp`, and the integer functions of libdevice."""

import numpy as np

from labkit.simulator.functions.table import Function, cases
from labkit.simulator.seam import types

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
NARROW = {types.boolean, types.int8, types.int16, types.uint8, types.uint16}
SELECTED = "float64 float32 int16 uint16 int32 uint32 int64 uint64".split()


def unsigned(x):
    """Return the same bits as an unsigned integer."""
    return np.asarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def count_ones(x):
    """Count the bits that are 1."""
    return np.bitwise_count(unsigned(x))


def reverse(x):
    """Reverse the order of the bits, by swapping ever larger halves."""
    bits = unsigned(x)
    width = 8 * x.dtype.itemsize
    shift = 1
    while shift < width:
        low = bits.dtype.type(sum(1 << i for i in range(width) if not i & shift))
        bits = (bits & low) << bits.dtype.type(shift) | (bits >> bits.dtype.type(shift)) & low
        shift *= 2
    return bits.view(x.dtype)


def leading_zeros(x):
    """Count the zeros above the highest 1."""
    bits = unsigned(x)
    shift = 1
    while shift < 8 * x.dtype.itemsize:  # spreads the highest one over all that is below it
        bits = bits | bits >> bits.dtype.type(shift)
        shift *= 2
    return 8 * x.dtype.itemsize - np.bitwise_count(bits).astype(np.int32)


def find_first(x):
    """Return the position of the lowest 1, counted from 1; 0 if there is none."""
    bits = unsigned(x)
    return np.where(bits == 0, 0, np.bitwise_count(bits ^ (bits - bits.dtype.type(1))).astype(np.int32))


def _same_type_cases(*kinds):
    return cases(*(f"{kind}({kind})" for kind in kinds))


FUNCTIONS = {
    function.name: function
    for function in (
        Function("cuda.popc", count_ones, cases=_same_type_cases(*INTEGERS)),
        Function("cuda.clz", leading_zeros, cases=_same_type_cases(*INTEGERS)),
        Function("cuda.brev", reverse, cases=_same_type_cases("uint32", "uint64")),
        Function(
            "cuda.ffs", find_first, cases=cases(*(f"uint32({kind})" for kind in INTEGERS)), lacks_code=NARROW.issuperset
        ),
    )
}

# --- libdevice ---


def byte_permuted(x, y, selector):
    """Select four of the eight bytes of x and y, by the low three bits of each nibble of the selector."""
    source = unsigned(x).astype(np.uint64) | unsigned(y).astype(np.uint64) << np.uint64(32)
    result = np.uint64(0)
    for position in range(4):
        byte = (unsigned(selector) >> np.uint32(4 * position) & np.uint32(7)).astype(np.uint64)
        result = result | (source >> np.uint64(8) * byte & np.uint64(0xFF)) << np.uint64(8 * position)
    return result.astype(np.uint32).view(np.int32)


def _low24(x):
    """Return the low 24 bits, as a signed integer."""
    return (x << 8).astype(np.int64) >> 8


def _high64(x, y, signed):
    """Return the upper half of a 128-bit product, from four products of halves."""
    a, b = unsigned(x), unsigned(y)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    middle = (a >> half) * (b & low) + ((a & low) * (b & low) >> half)
    other = (a & low) * (b >> half) + (middle & low)
    high = (a >> half) * (b >> half) + (middle >> half) + (other >> half)
    if signed:
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(np.int64)


def _as_unsigned(function):
    """Return a function of unsigned integers for signed ones with the same bits, as libdevice declares it."""
    return lambda *values: np.asarray(function(*map(unsigned, values))).view(values[0].dtype)


def _in_int64(function):
    """Return a function that computes in int64 and wraps around to int32."""
    return lambda *values: np.asarray(function(*(v.astype(np.int64) for v in values))).astype(np.int32)


def _unsigned_in_int64(function):
    return lambda *values: np.asarray(function(*(unsigned(v).astype(np.int64) for v in values))).astype(np.int32)


LIBDEVICE = {
    "int32(int32)": {"abs": np.abs, "brev": reverse, "clz": leading_zeros, "ffs": find_first, "popc": count_ones},
    "int32(int64)": {"clzll": leading_zeros, "ffsll": find_first, "popcll": count_ones},
    "int64(int64)": {"brevll": reverse, "llabs": np.abs},
    "int32(int32, int32)": {
        "hadd": _in_int64(lambda x, y: (x + y) >> 1),
        "rhadd": _in_int64(lambda x, y: (x + y + 1) >> 1),
        "uhadd": _unsigned_in_int64(lambda x, y: (x + y) >> 1),
        "urhadd": _unsigned_in_int64(lambda x, y: (x + y + 1) >> 1),
        "max": np.maximum,
        "min": np.minimum,
        "umax": _as_unsigned(np.maximum),
        "umin": _as_unsigned(np.minimum),
        "mul24": lambda x, y: (_low24(x) * _low24(y)).astype(np.int32),
        "umul24": _unsigned_in_int64(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF)),
        "mulhi": _in_int64(lambda x, y: x * y >> 32),
        "umulhi": lambda x, y: (unsigned(x).astype(np.uint64) * unsigned(y) >> np.uint64(32)).astype(np.int32),
    },
    "int32(int32, int32, int32)": {
        "byte_perm": byte_permuted,
        "sad": _in_int64(lambda x, y, z: np.abs(x - y) + z),
        "usad": _unsigned_in_int64(lambda x, y, z: np.abs(x - y) + z),
    },
    "int64(int64, int64)": {
        "llmax": np.maximum,
        "llmin": np.minimum,
        "ullmax": _as_unsigned(np.maximum),
        "ullmin": _as_unsigned(np.minimum),
        "mul64hi": lambda x, y: _high64(x, y, True),
        "umul64hi": lambda x, y: _high64(x, y, False),
    },
}
