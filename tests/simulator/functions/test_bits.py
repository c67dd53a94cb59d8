"""Functions of integers' bits against Python's unbounded integers."""

import numpy as np
import pytest

from labkit.simulator.functions import bits
from labkit.simulator.lanes import apply_function

DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def integers(dtype, count=40, seed=4):
    limits = np.iinfo(dtype)
    some = np.random.default_rng(seed).integers(limits.min, limits.max, count, dtype, endpoint=True)
    return np.append(some, np.array([0, 1, limits.min, limits.max], dtype))


def raw(value, width):
    return int(value) % 2**width


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_counted_found_and_reversed(dtype):
    width = 8 * np.dtype(dtype).itemsize
    for value in integers(dtype):
        text = format(raw(value, width), f"0{width}b")
        assert bits.count_ones(value) == text.count("1")
        assert bits.leading_zeros(value) == len(text) - len(text.lstrip("0"))
        assert bits.find_first(value) == (width - text.rindex("1") if "1" in text else 0)
        assert format(raw(bits.reverse(value), width), f"0{width}b") == text[::-1]
    for function in (bits.count_ones, bits.leading_zeros, bits.find_first, bits.reverse):
        values = integers(dtype)
        np.testing.assert_array_equal(function(values), [function(v) for v in values])


def signed(value, width=32):
    value %= 2**width
    return value - 2**width if value >= 2 ** (width - 1) else value


def unsigned32(function):
    return lambda *values: signed(function(*(raw(v, 32) for v in values)))


def permuted(x, y, s):
    """Byte i of the result is the byte of the eight in y:x that nibble i of s names."""
    source = (raw(x, 32) | raw(y, 32) << 32).to_bytes(8, "little")
    return signed(int.from_bytes(bytes(source[raw(s, 32) >> 4 * i & 7] for i in range(4)), "little"))


TWO = {
    "hadd": lambda x, y: (x + y) >> 1,
    "rhadd": lambda x, y: (x + y + 1) >> 1,
    "uhadd": unsigned32(lambda x, y: (x + y) >> 1),
    "urhadd": unsigned32(lambda x, y: (x + y + 1) >> 1),
    "mul24": lambda x, y: signed(signed(x, 24) * signed(y, 24)),
    "umul24": unsigned32(lambda x, y: (x % 2**24) * (y % 2**24)),
    "mulhi": lambda x, y: x * y >> 32,
    "umulhi": unsigned32(lambda x, y: x * y >> 32),
    "max": max,
    "min": min,
    "umax": unsigned32(max),
    "umin": unsigned32(min),
}
THREE = {
    "sad": lambda x, y, z: signed(abs(x - y) + z),
    "usad": unsigned32(lambda x, y, z: abs(x - y) + z),
    "byte_perm": permuted,
}


def libdevice(name):
    return next(functions[name] for functions in bits.LIBDEVICE.values() if name in functions)


@pytest.mark.parametrize("name", [*TWO, *THREE])
def test_integer_functions_of_libdevice(name):
    columns = [integers(np.int32, seed=s) for s in range(3 if name in THREE else 2)]
    found = apply_function(libdevice(name), np.dtype(np.int32), *columns)
    assert found.tolist() == [{**TWO, **THREE}[name](*map(int, row)) for row in zip(*columns)]


def test_the_upper_half_of_a_product_of_64_bits():
    x, y = integers(np.int64, seed=1), integers(np.int64, seed=2)
    assert libdevice("mul64hi")(x, y).tolist() == [int(a) * int(b) >> 64 for a, b in zip(x, y)]
    expected = [signed(raw(a, 64) * raw(b, 64) >> 64, 64) for a, b in zip(x, y)]
    assert libdevice("umul64hi")(x, y).tolist() == expected
