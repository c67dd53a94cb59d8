"""Values stay within what CUDA documents for its own functions."""

import math

import numpy as np
import pytest

from labkit.simulator.errors import LaunchError
from labkit.simulator.functions import mathematics
from labkit.simulator.functions.ulp import BESSEL, FAST, FAST_EXPONENTIALS, ULP, allowed_error
from labkit.simulator.lanes import apply_function
from labkit.simulator.language import FUNCTIONS

wider = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="needs a type wider than float64 for the true values"
)

TRUE = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp10": lambda x: np.longdouble(10) ** x,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}


def libdevice(name, *values):
    """Return the result of `cuda.libdevice.name` for float32 or float64 values."""
    ending = "f" if values[-1].dtype == np.float32 else ""
    with np.errstate(all="ignore"):
        return apply_function(FUNCTIONS[f"cuda.libdevice.{name}{ending}"].run, values[-1].dtype, *values)


@wider
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TRUE)
def test_functions_stay_within_cudas_bounds(name, dtype):
    rng = np.random.default_rng(1)
    reach = 80 if dtype == np.float32 else 700
    x = [rng.uniform(-r, r, 400) for r in (1, 20, reach)] + [10 ** rng.uniform(-30, 30, 99)]
    x = np.concatenate([*x, [0.0]]).astype(dtype)
    found = libdevice(name, x)
    with np.errstate(all="ignore"):
        exact = TRUE[name](x.astype(np.longdouble))
        error, allowed = np.abs(found - exact), allowed_error(name, exact, dtype, x)
        ordinary = np.isfinite(exact.astype(dtype)) & np.isfinite(exact)
    assert np.all(error[ordinary] <= allowed[ordinary])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))


@wider
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "true"), [("pow", np.power), ("hypot", np.hypot), ("atan2", np.arctan2)])
def test_functions_of_two_numbers_stay_within_cudas_bounds(name, true, dtype):
    x, y = np.random.default_rng(2).uniform(0.01, 20, (2, 500)).astype(dtype)
    exact = true(x.astype(np.longdouble), y.astype(np.longdouble))
    ordinary = np.isfinite(exact.astype(dtype))
    assert np.all((np.abs(libdevice(name, x, y) - exact) <= allowed_error(name, exact, dtype, x))[ordinary])


def test_whole_powers_are_rounded_after_every_product():
    x, ones = np.float32([1.1, -1.3, 3.7]), np.ones(3, np.int32)
    fifth = x * ((x * x) * (x * x))
    for name in ("cuda.libdevice.powif", "math.pow"):
        for exponent, expected in ((5, fifth), (-5, 1 / fifth)):
            np.testing.assert_array_equal(apply_function(FUNCTIONS[name].run, x.dtype, x, exponent * ones), expected)


def test_the_logarithm_of_gamma_keeps_its_digits_near_its_zeros():
    zeta = [math.pi**2 / 6, 1.2020569031595942, math.pi**4 / 90, 1.03692775514337]
    for e in (2.0**-14, -(2.0**-14)):  # Abramowitz and Stegun, 6.1.33
        expected = -0.5772156649015329 * e + sum(z * (-e) ** k / k for k, z in enumerate(zeta, 2))
        assert libdevice("lgamma", np.float64(1 + e)) == pytest.approx(expected, rel=1e-15)
    assert libdevice("lgamma", np.float64(0.8255111545554434)) == 0.12817747218905595  # as an H100 has it
    np.testing.assert_array_equal(libdevice("lgamma", np.float64([1, 2, 3])), [0, 0, math.log(2)])
    assert libdevice("lgamma", np.float64(-0.5)) == pytest.approx(math.log(2 * math.sqrt(math.pi)), rel=1e-15)


def test_fast_division_takes_the_reciprocal_of_a_huge_number_for_zero():
    x, y = np.float32([[3, 3, np.inf, np.inf, 3], [2.0**126, 2.0**127, 2.0**127, np.inf, np.inf]])
    with np.errstate(all="ignore"):
        found = apply_function(FUNCTIONS["cuda.libdevice.fast_fdividef"].run, x.dtype, x, y)
    np.testing.assert_array_equal(found, np.float32([3 * 2.0**-126, 0, np.nan, np.nan, 0]))


def test_bounds_of_bessel_functions_of_any_order():
    ones, x, order = np.ones(4), np.array([2.0, 5.0, 9.0, 9.0]), np.array([4, 4, 4, 1])
    ulp = 2.0**-23
    np.testing.assert_array_equal(
        allowed_error("ynf", ones, np.float32, x, order), [12.5 * ulp, *[BESSEL["float32"]] * 3]
    )
    near = BESSEL["float64"]
    np.testing.assert_array_equal(allowed_error("yn", ones, np.float64, x, order), [np.inf, np.inf, near, near])
    np.testing.assert_array_equal(allowed_error("jn", ones, np.float64, x, order), [near] * 4)
    np.testing.assert_array_equal(allowed_error("yn", ones, np.float64, x, 0), allowed_error("y0", ones, np.float64, x))


def test_every_function_that_may_stray_has_a_bound():
    inexact = {n.removeprefix("math.") for n, f in mathematics.FUNCTIONS.items() if n.startswith("math.")}
    exact = "sqrt ceil floor trunc fabs isnan isinf isfinite copysign fmod nextafter remainder frexp ldexp modf".split()
    names = {"gamma": "tgamma"}
    assert {names.get(n, n) for n in inexact} - {*exact, "degrees", "radians"} <= set(ULP)


def test_the_fast_variants_have_bounds_of_their_own():
    x, ulp = np.array([1.0, 100.0], np.float32), 2.0**-23
    for name, (_, absolute, beyond) in FAST.items():
        expected = [absolute + ulp / 2, np.inf if beyond is None else (beyond + 0.5) * ulp]
        np.testing.assert_array_equal(allowed_error(name, np.ones(2), np.float32, x), expected)
    for name, slope in FAST_EXPONENTIALS.items():
        expected = [(2.5 + slope // 1) * ulp, (2.5 + 100 * slope // 1) * ulp]
        np.testing.assert_array_equal(allowed_error(name, np.ones(2), np.float32, x), expected)
    assert allowed_error("j0f", np.ones(1), np.float32, np.array([9.0]))[0] == BESSEL["float32"]


# --- special functions ---

# Abramowitz and Stegun, tables 7.1, 9.1, 9.2, 9.4
TABLED = [
    ("erf", (0.5,), 0.5204998778),
    ("erfc", (2.0,), 0.004677734981),
    ("tgamma", (4.5,), 11.631728396567448),
    ("lgamma", (10.5,), 13.940625219403763),
    ("j0", (1.0,), 0.765197686557967),
    ("j0", (20.0,), 0.167024664340583),
    ("j1", (2.5,), 0.497094102464274),
    ("j1", (-2.5,), -0.497094102464274),
    ("j0", (100.0,), 0.019985850304223122),
    ("y0", (3.0,), 0.376850010012790),
    ("y1", (0.5,), -1.471472392670243),
    ("y0", (50.0,), -0.09806499547007698),
    ("jn", (5, 10.0), -0.234061528186794),
    ("yn", (2, 1.0), -1.650682606816254),
]


@pytest.mark.parametrize(("name", "given", "expected"), TABLED)
def test_tabled_values(name, given, expected):
    values = [np.float64(v) if isinstance(v, float) else np.int32(v) for v in given]
    digits = len(repr(expected).lstrip("-0.").replace(".", "")) - 1
    assert libdevice(name, *values) == pytest.approx(expected, rel=10.0**-digits)


@pytest.mark.parametrize("x", [0.01, 1.0, 2.404825557695773, 7.9, 24.9, 25.1, 300.0, 1e5])
def test_bessel_functions_keep_their_wronskian(x):
    x = np.float64(x)
    for n in range(3):
        j, y, j_next, y_next = (libdevice(f, np.int32(m), x) for m in (n, n + 1) for f in ("jn", "yn"))
        assert j_next * y - j * y_next == pytest.approx(2 / (math.pi * x), rel=1e-11)


@pytest.mark.parametrize(("n", "x"), [(40, 30.0), (128, 5.0), (3, 50.0), (31, 24.0), (28, 26.0), (29, 29.5)])
def test_bessel_functions_keep_their_recurrence(n, x):
    before, here, after = (libdevice("jn", np.int32(m), np.float64(x)) for m in (n - 1, n, n + 1))
    assert before + after == pytest.approx(2 * n / x * here, rel=1e-11)


def test_the_normal_distribution_is_inverted_far_out():
    for p in (1e-300, 1e-20, 0.3, 0.9):
        assert libdevice("normcdf", libdevice("normcdfinv", np.float64(p))) == pytest.approx(p, rel=1e-12)


def test_bessel_functions_of_an_order_far_above_the_argument_are_tiny_and_quick():
    assert libdevice("jn", np.int32(9999), np.float64(9000)) < 1e-30
    assert libdevice("jn", np.int32(50), np.float64(1e-9)) == 0
    assert libdevice("jn", np.int32(31), np.float64(1e-8)) == pytest.approx(0.5e-8**31 / math.factorial(31), rel=1e-12)
    with pytest.raises(LaunchError, match="orders up to 10000"):
        libdevice("yn", np.int32(2**30), np.float64(1))


def test_bessel_functions_have_their_limits():
    assert libdevice("y0", np.float64(0)) == -np.inf and np.isnan(libdevice("y1", np.float64(-1)))
    assert libdevice("j0", np.float64(np.inf)) == 0 and np.isnan(libdevice("jn", np.int32(-1), np.float64(1)))


@pytest.mark.parametrize("x", [1e-20, 0.1, 0.4, 0.9, 1.5, 3.0, 5.5])
def test_inverse_error_functions_invert(x):
    for sign in (1, -1):
        y = math.erf(sign * x)
        slope = 2 / math.sqrt(math.pi) * math.exp(-x * x)
        if abs(y) < 1:
            found = libdevice("erfinv", np.float64(y))
            assert abs(found - sign * x) <= 5 * math.ulp(x) + math.ulp(y) / slope
        z = math.erfc(sign * x)
        found = libdevice("erfcinv", np.float64(z))
        assert abs(found - sign * x) <= 6 * math.ulp(x) + 2 * math.ulp(z) / slope
    assert libdevice("erfinv", np.float64(1)) == np.inf and libdevice("erfcinv", np.float64(2)) == -np.inf
    assert np.isnan(libdevice("erfinv", np.float64(1.5)))


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("normcdf", 0.0, 0.5),
        ("normcdf", -10.0, 7.619853024160527e-24),
        ("normcdf", -37.5, 4.605353009581954e-308),
        ("normcdfinv", 0.975, 1.959963984540054),
        ("erfcx", 10.0, 0.05614099274382259),
        ("erfcx", 100.0, 0.005641613782989433),
        ("erfcx", -2.0, 108.9409043899779),
        ("sinpi", 1e15 + 0.5, 1.0),
        ("sinpi", 3.0, 0.0),
        ("cospi", 0.5, 0.0),
        ("exp10", 3.0, 1000.0),
        ("tgamma", 0.0, np.inf),
        ("lgamma", -2.0, np.inf),
    ],
)
def test_special_values(name, x, expected):
    assert libdevice(name, np.float64(x)) == pytest.approx(expected, rel=1e-12, abs=0)
