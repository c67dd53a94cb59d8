"""A GPU's result of every scalar function, compared with the simulator's and within CUDA's bounds."""

import numpy as np
import pytest
from cells import kernel_in
from family_kernels import FAMILIES, kernel_of, signature

import labkit
from labkit import cuda
from labkit.simulator.functions import half
from labkit.simulator.functions.ulp import FAST, FAST_EXPONENTIALS, ULP, allowed_error
from labkit.simulator.numba_types import bfloat16, dtype_of, types

pytestmark = pytest.mark.skipif(not cuda.on_gpu(), reason="compares with a GPU, and there is none")

THREADS = 256
TOGETHER = 40  # functions in one kernel: compiling takes longer than in proportion
OTHER_NAMES = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan"}
OTHER_NAMES |= {"arctan2": "atan2", "arctanh": "atanh", "gamma": "tgamma", "sincos": "sin"}
OTHER_NAMES |= {"sincospi": "sinpi", "fast_sincosf": "fast_sinf"}
NO_BOUND = {"fast_tanf", "fast_powf"}
ORDERED = {f"cuda.libdevice.{name}" for name in ("jn", "jnf", "yn", "ynf")}
HALF_UNITS = 2  # of the 16-bit functions that are not exact
GROUPS = [
    (family, start)
    for family, module in FAMILIES.items()
    for start in range(0, len(module.FUNCTIONS), TOGETHER)
]  # fmt: skip


def numbers(kind, place):
    """Numbers of a type: small and ordinary ones, and integers over the whole range."""
    rng = np.random.default_rng(place)
    dtype = dtype_of(kind)
    if isinstance(kind, types.Boolean):
        return rng.integers(0, 2, THREADS).astype(bool)
    if isinstance(kind, types.Integer):
        limits = np.iinfo(dtype)
        wide = rng.integers(limits.min, limits.max, THREADS // 2, dtype, endpoint=True)
        return np.concatenate([wide, rng.integers(0, 20, THREADS // 2).astype(dtype)])
    values = np.concatenate([rng.uniform(-1, 1, THREADS // 2), rng.uniform(-9, 9, THREADS // 2)])
    return (values + 1j * values[::-1]).astype(dtype) if isinstance(kind, types.Complex) else values.astype(dtype)


def tolerance(function, part, expected, given):
    """Return the allowed difference of GPU and simulator, which is within half a unit of the true value."""
    module, _, name = function.name.rpartition(".")
    name = OTHER_NAMES.get(name, name)
    if isinstance(part, types.Complex) or module == "cmath":
        return np.abs(expected) * (1e-13 if part == types.complex128 else 1e-5)
    if part in (types.float16, bfloat16):
        exact = name.removeprefix("__")[1:] not in half.IN_FLOAT64
        unit = (
            np.spacing(np.abs(expected.real).astype(np.float16)) if part == types.float16 else expected.real * 2.0**-7
        )
        return np.zeros(THREADS) if exact else HALF_UNITS * np.abs(unit).astype(np.float64)
    if name in NO_BOUND:
        return np.full(THREADS, np.inf)
    if function.name in ORDERED:
        order, x = given
        return allowed_error(name, expected.real, dtype_of(part), x, order)
    base = name if name in ULP else name.removesuffix("f")
    base = OTHER_NAMES.get(base, base)
    if part not in (types.float32, types.float64) or not ({base, name} & {*ULP, *FAST, *FAST_EXPONENTIALS}):
        return np.zeros(THREADS)
    known = name if name in FAST or name in FAST_EXPONENTIALS else base
    return allowed_error(known, expected.real, dtype_of(part), given[0].real)


@pytest.mark.parametrize(("family", "start"), GROUPS)
def test_a_gpu_agrees(family, start):
    functions = list(FAMILIES[family].FUNCTIONS.values())[start : start + TOGETHER]
    # the header's names of bfloat16 are known to numba-cuda as others
    functions = [f for f in functions if not f.name.startswith("cuda.bf16.__") and f.name not in ORDERED]
    if functions:
        compare(functions, numbers)


def test_a_gpu_agrees_on_bessel_functions_of_any_order():
    def small(kind, place):
        return numbers(kind, place) % 20 if isinstance(kind, types.Integer) else np.abs(numbers(kind, place))

    compare([FAMILIES["libdevice"].FUNCTIONS[name] for name in ORDERED], small)


def compare(functions, numbers):
    """The functions on a GPU and in the simulator, with `numbers(type, place)` for arguments."""
    kernel, inputs, rows = kernel_of(functions)
    arguments = [numbers(*key) for key in inputs]
    simulated = labkit.simulate(kernel, 1, THREADS, *arguments, np.zeros((len(rows), THREADS), complex)).outputs[-1]
    found = np.zeros((len(rows), THREADS), complex)
    kernel[1, THREADS](*arguments, found)
    wrong = []
    for (function, number, part), ours, theirs in zip(rows, simulated, found):
        given = [arguments[inputs.index((kind, place))] for place, kind in enumerate(signature(function)[0])]
        with np.errstate(all="ignore"):
            near = np.abs(ours - theirs) <= tolerance(function, part, ours, given)
        same = (ours == theirs) | near | (np.isnan(ours) & np.isnan(theirs))
        if not same.all():
            lane = int(np.argmin(same))
            wrong.append((function.name, number, ours[lane], theirs[lane], int((~same).sum())))
    assert not wrong


OPERATIONS = [
    "a % b",
    "a // b",
    "divmod(a, b)[1]",
    "a ** k",
    "round(a, 2)",
    "round(a)",
    "int32(a * 1e9)",
    "uint8(min(abs(a), 255.0))",
]
OPERATIONS += ["k // j", "k % j", "k ** j", "k << j", "k >> j", "min(a, b)", "int64(a) // j", "(k + a) * b"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gpu_divides_rounds_and_converts_alike(dtype):
    """A number outside the range of an 8-bit integer is left out: a GPU then keeps 16 bits of it, and adds those."""
    casts = {name: getattr(types, name) for name in ("int32", "int64", "uint8")}
    lines = [f"out[{row}, i] = {text}" for row, text in enumerate(OPERATIONS)]
    body = "\n    ".join(["i = cuda.grid(1)", "a, b, k, j = x[i], y[i], n[i], m[i]", *lines])
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y, n, m, out):\n    {body}", **casts)
    rng = np.random.default_rng(11)
    x, y = rng.uniform(-99, 99, (2, THREADS)).astype(dtype)
    n, m = rng.integers(-9, 10, (2, THREADS))
    x[:4], y[:8], m[:9] = (1.0, -1.0, np.nan, np.inf), 0.1, 0
    found = np.zeros((len(OPERATIONS), THREADS))
    kernel[1, THREADS](x, y, n, m, found)
    simulated = labkit.simulate(kernel, 1, THREADS, x, y, n, m, np.zeros_like(found)).outputs[-1]
    for text, ours, theirs in zip(OPERATIONS, simulated, found):
        np.testing.assert_array_equal(ours, theirs, err_msg=text)
