"""Arithmetic in each rounding mode against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from labkit.simulator.functions import rounding
from labkit.simulator.lanes import apply_function
from labkit.simulator.language import FUNCTIONS

TYPES = [np.float32, np.float64, np.float16]
EXACT = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


def operands(dtype, count, rng):
    """Finite numbers: of ordinary size, and of any bits at all."""
    ordinary = rng.standard_normal((count, 3)) * 10.0 ** rng.integers(-3, 4, (count, 3))
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    any_bits = rng.integers(0, np.iinfo(unsigned).max, (count // 2, 3), unsigned, endpoint=True).view(dtype)
    values = np.concatenate([ordinary.astype(dtype), any_bits])
    return values[np.isfinite(values).all(axis=1) & (values != 0).all(axis=1)].T


def is_rounded(found, exact, mode):
    """Is `found` the float that `exact` rounds to?"""
    largest = Fraction(float(np.finfo(found.dtype).max))
    with np.errstate(over="ignore"):
        below, above = (np.nextafter(found, found.dtype.type(end)) for end in (-np.inf, np.inf))
    if np.isinf(found):
        return abs(exact) > largest and mode != "rz" and (mode == "rn" or (mode == "ru") == (found > 0))
    value = Fraction(float(found))
    if mode == "rn":
        return all(abs(value - exact) <= abs(Fraction(float(n)) - exact) for n in (below, above) if np.isfinite(n))
    if mode == "rd" or (mode == "rz" and exact > 0):
        return value <= exact and (np.isinf(above) or Fraction(float(above)) > exact)
    return value >= exact and (np.isinf(below) or Fraction(float(below)) < exact)


@pytest.mark.parametrize("mode", rounding.MODES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_results_are_rounded_right(name, dtype, mode):
    with np.errstate(all="ignore"):
        count = EXACT[name].__code__.co_argcount
        given = operands(dtype, 60, np.random.default_rng(7))[:count]
        found = np.asarray(getattr(rounding, name)(*given, mode))
    assert found.dtype == dtype
    for i in range(found.size):
        exact = EXACT[name](*(Fraction(float(column[i])) for column in given))
        assert is_rounded(found[i], exact, mode), [column[i] for column in given]


@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
@pytest.mark.parametrize("dtype", TYPES)
def test_square_roots_are_rounded_right(dtype, mode):
    x = np.random.default_rng(8).uniform(0, 100, 40).astype(dtype)
    for value, found in zip(x, np.asarray(rounding.sqrt(x, mode))):
        exact, next_one = Fraction(float(value)), np.nextafter(found, dtype(np.inf if mode != "ru" else -np.inf))
        assert (Fraction(float(found)) ** 2 <= exact) == (mode != "ru")
        assert (Fraction(float(next_one)) ** 2 > exact) == (mode != "ru")


@pytest.mark.parametrize("mode", rounding.MODES)
@pytest.mark.parametrize("dtype", TYPES)
def test_integers_are_rounded_right(dtype, mode):
    for kind in (np.int32, np.int64, np.uint64):
        limits = np.iinfo(kind)
        values = np.random.default_rng(9).integers(limits.min, limits.max, 30, kind, endpoint=True)
        values = np.append(values, np.array([limits.min, limits.max, 1, 2049], kind))
        with np.errstate(all="ignore"):
            found = np.asarray(rounding.from_integer(values, dtype, mode))
        for value, result in zip(values, found):
            assert is_rounded(result, Fraction(int(value)), mode), value


def test_a_sum_of_zero_is_negative_when_rounding_down():
    for dtype in TYPES:
        x = np.array([1.5, 0.0], dtype)
        assert np.signbit(rounding.add(x, -x, "rd")).all()
        assert not np.signbit(rounding.add(x, -x, "ru")).any()


def test_fma_rounds_once():
    x = np.float32(1 + 2**-12)
    assert rounding.fma(x, x, np.float32(-1 - 2**-11)) == np.float32(2**-24)
    assert np.float32(x * x) - np.float32(1 + 2**-11) == 0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("float2int_rd", -1.5, -2),
        ("float2int_ru", -1.5, -1),
        ("float2int_rz", -1.9, -1),
        ("float2int_rn", 2.5, 2),
        ("float2uint_rz", -3.0, 0),
        ("float2uint_rz", 4e9, 4_000_000_000 - 2**32),
        ("double2ll_rn", 1e30, 2**63 - 1),
        ("double2int_rn", math.nan, -(2**31)),
        ("float2int_rn", math.nan, 0),
        ("uint2float_rn", -1, 2.0**32),
        ("ull2double_rz", -1, 2.0**64 - 2048),
        ("ll2float_ru", 2**24 + 1, 2.0**24 + 2),
        ("double2float_rd", 0.1, 0.09999999403953552),
    ],
)
def test_conversions_of_libdevice(name, value, expected):
    function = FUNCTIONS[f"cuda.libdevice.{name}"]
    (kind,) = function.cases[0].args
    with np.errstate(all="ignore"):
        found = apply_function(
            function.run, np.dtype(str(function.cases[0].return_type)), np.dtype(str(kind)).type(value)
        )
    assert found == expected
