"""Numbers of every type in a kernel: float16, bfloat16, complex; conversions, division by zero, shifts, powers."""

import cmath
import math
import operator
import re

import numpy as np
import pytest
from cells import kernel_in, run_cell
from numba import njit, types
from numba_oracle import plain, signature_in_numba, variable_types

import labkit
from labkit.simulator import numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.translate import translate
from labkit.simulator.translator.operators import BINARY, COMPARE, REFUSED_IN_PLACE
from labkit.simulator.values import Array

NAMES = """bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128
    bfloat16""".split()
SCALARS = {name: numba_types.type_named(name) for name in NAMES}
CASTS = {name: kind for name, kind in SCALARS.items() if name != "bfloat16"}


def run(body, *arrays, **names):
    """The arrays after a kernel `body` of one thread on arrays named x, y, z, out..."""
    given = ", ".join([*"xyz"[: len(arrays) - 1], "out"])
    lines = "\n    ".join(body.strip().splitlines())
    kernel = kernel_in(f"@cuda.jit\ndef kernel({given}):\n    i = cuda.grid(1)\n    {lines}", **CASTS, **names)
    trace = labkit.simulate(kernel, 1, len(arrays[-1]), *arrays)
    return trace.outputs[-1], trace


def theirs(kind):
    """numba-cuda's own type for a type of ours."""
    from numba.cuda import types as cuda_types

    return cuda_types.bfloat16 if kind == numba_types.bfloat16 else kind


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("operation", [f for f, _ in (*BINARY.values(), *COMPARE.values())], ids=lambda f: f.__name__)
def test_operators_are_typed_as_on_a_gpu(operation):
    for a in SCALARS.values():
        for b in SCALARS.values():
            ours = numba_types.resolve(operation, (a, b))
            assert (ours and plain(*ours)) == signature_in_numba(operation, (theirs(a), theirs(b))), (a, b)


NOT_FOR = {("complex64", "int(v)"), ("complex64", "float(v)"), ("complex64", "round(v)")}
NOT_FOR |= {("float16", "bool(v)"), ("float16", "not v")}


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("text", ["-v", "+v", "abs(v)", "int(v)", "float(v)", "bool(v)", "round(v)", "not v"])
def test_signs_and_conversions_are_typed_as_on_a_gpu(text):
    for name in ("int8", "uint32", "int64", "float16", "float32", "complex64"):
        if (name, text) in NOT_FOR:
            continue
        source = f"v = x[0]\n    s = {text}\n    out[0] = s != 0"
        kernel = kernel_in(f"@cuda.jit\ndef kernel(x, out):\n    {source}")
        kinds = (Array(SCALARS[name], 1, "global"), Array(types.int32, 1, "global"))
        ours = translate(kernel.py_func, kinds).variables
        arrays = [types.Array(kind.dtype, 1, "C") for kind in kinds]
        assert ours == variable_types(kernel.py_func, arrays), name


COMPLEX = [
    "a + b", "a - b", "a * b", "a / b", "a ** b", "a ** 2", "-a", "a + x[i].real", "2 * a", "a * 1j", "a == b",
    "a != b", "abs(a)", "a.real", "a.imag", "a.conjugate()", "complex(a.imag, b.real)", "complex64(a)", "cmath.exp(a)",
    "cmath.sqrt(b)", "cmath.log(a)", "cmath.sin(a) * cmath.cos(b)", "cmath.atan(a)", "np.conjugate(a)", "np.sin(a)",
    "bool(a)", "a if abs(a) > 1 else b", "2.5 + a.real",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("text", COMPLEX)
@pytest.mark.sample(30)
def test_complex_arithmetic_has_numbas_value_and_type(text, dtype):
    rng = np.random.default_rng(5)
    x, y = (rng.normal(size=8) + 1j * rng.normal(size=8) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    found, _ = run(f"a, b = x[i], y[i]\nout[i] = {text}", x, y, np.zeros(8, np.complex128), cmath=cmath, np=np)
    names = {**CASTS, "cmath": cmath, "np": np}
    function = njit(run_cell(f"def function(x, y, i):\n    a, b = x[i], y[i]\n    return {text}", **names)["function"])
    expected = [function(x, y, i) for i in range(8)]
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.complex64 else 1e-12)


def test_a_complex_access_counts_its_bytes_and_its_bank_passes():
    body = "t = cuda.shared.array(32, complex128)\nt[i] = x[i]\ncuda.syncthreads()\nout[i] = t[31 - i]"
    x = np.arange(32) * (1 + 2j)
    found, trace = run(body, x, np.zeros(32, complex))
    np.testing.assert_array_equal(found, x[::-1])
    load = next(s for s in trace.sites if s.site.space == "shared" and s.site.kind == "load")
    assert (load.bytes, load.wavefronts, load.bank_conflicts) == (512, 4, 0)
    assert next(s for s in trace.sites if s.site.array == "x").sectors == 16


def test_a_half_access_counts_two_bytes():
    x = np.arange(64, dtype=np.float16)
    found, trace = run("v = x[i]\nout[i] = v * v", x, np.zeros(64, np.float16))
    np.testing.assert_array_equal(found, x * x)
    assert [(s.bytes, s.sectors) for s in trace.sites] == [(128, 4), (128, 4)]


def test_float16_rounds_after_every_operation_and_widens_with_others():
    x = np.array([1.0, 0.1, 2048.0, 60000.0], np.float16)
    y = np.array([0.0004883, 0.2, 1.0, 60000.0], np.float16)
    found, _ = run("out[i] = x[i] + y[i]", x, y, np.zeros(4, np.float64))
    np.testing.assert_array_equal(found, [1.0, np.float64(x[1] + y[1]), 2048.0, np.inf])
    wide, _ = run("out[i] = x[i] + float32(1) * y[i]", x, y, np.zeros(4, np.float64))
    np.testing.assert_array_equal(wide, x.astype(np.float32) + y.astype(np.float32))


def test_float16_becomes_the_nearest_integer():
    found, _ = run("out[i] = int32(x[i])", np.array([2.5, -3.7, 3.5, 0.2], np.float16), np.zeros(4, np.int32))
    assert found.tolist() == [2, -4, 4, 0]


@pytest.mark.parametrize("text", ["bool(v)", "not v", "1 if v else 2", "v and v"])
def test_a_float16_has_no_truth_value(text):
    with pytest.raises(KernelError, match="write `!= 0`"):
        run(f"v = x[i]\nout[i] = {text}", np.ones(1, np.float16), np.zeros(1))


def test_bfloat16_is_held_in_arrays_and_rounded():
    body = """t = cuda.shared.array(4, cuda.bf16.bfloat16)
t[i] = cuda.bf16.bfloat16(x[i])
a = t[i]
b = a * a + a
t[i] = b
out[i] = t[i]"""
    x = np.array([1.0, 0.1, 3.14159, 200.0], np.float32)
    found, trace = run(body, x, np.zeros(4, np.float32))
    np.testing.assert_array_equal(found, bfloat(bfloat(bfloat(x) ** 2) + bfloat(x)))
    assert next(s for s in trace.sites if s.site.space == "shared").bytes == 8


def bfloat(x):
    """float32 rounded to the nearest bfloat16, by adding half a unit to its bits."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def test_all_elements_of_a_bfloat16_array_are_set_at_once():
    body = "t = cuda.local.array(2, cuda.bf16.bfloat16)\nt[:] = x[i]\nout[i] = t[0] + t[1]"
    found, _ = run(body, np.array([1.5, 0.1], np.float32), np.zeros(2))
    assert found.tolist() == [3.0, float(bfloat(2 * bfloat(0.1)))]


def test_bfloat16_goes_with_numbers_as_numba_says():
    body = "a = cuda.bf16.bfloat16(x[i])\nout[i] = a + x[i]\nout[i] += a + int8(1)\nout[i] += abs(a) * 0.5"
    found, _ = run(body, np.array([1.01], np.float32), np.zeros(1))
    a = float(bfloat(1.01))
    assert found[0] == float(np.float32(a) + np.float32(1.01)) + float(bfloat(a + 1)) + a * 0.5


# --- conversions ---

OUTSIDE = {
    "int8": {300.0: 44, -300.0: -44, 4e9: -1, math.nan: 0, 100.9: 100},
    "uint8": {300.0: 44, -5.0: 0, 7e4: 255, math.nan: 0},
    "int16": {4e4: 32767, -4e4: -32768, math.nan: -32768},
    "int32": {3e9: 2147483647, -math.inf: -2147483648, math.nan: -2147483648, -1.9: -1},
    "uint32": {-1.0: 0, 5e9: 4294967295, math.nan: 2147483648, 3e9: 3000000000},
    "int64": {1e19: 2**63 - 1, -1e19: -(2**63), math.nan: -(2**63)},
    "uint64": {1e20: 2**64 - 1, -3.0: 0, 1e19: 10**19},
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_float_outside_an_integers_range_gives_what_the_gpu_gives(name):
    x = np.array(list(OUTSIDE[name]))
    found, _ = run(f"out[i] = {name}(x[i])", x, np.zeros(x.size, name))
    assert found.tolist() == list(OUTSIDE[name].values())


def test_nan_of_float32_becomes_zero_in_32_bits():
    found, _ = run("out[i] = int32(x[i])", np.array([np.nan], np.float32), np.ones(1, np.int32))
    assert found[0] == 0


@pytest.mark.parametrize("text", ["float32(z)", "int64(z)", "int(z)", "float(z)"])
def test_a_complex_number_does_not_become_a_real_one(text):
    with pytest.raises(KernelError, match=r"complex"):
        run(f"z = x[i]\nout[i] = {text}", np.ones(1, complex), np.zeros(1))


def test_complex_numbers_have_no_order():
    for text in ("x[i] < x[i]", "min(x[i], x[i])"):
        with pytest.raises(KernelError, match="cannot compare"):
            run(f"out[i] = {text}", np.ones(1, complex), np.zeros(1))


@pytest.mark.parametrize("other", ["0.5", "uint64(7)", "float32(0.5)"])
def test_a_large_integer_keeps_its_digits_beside_lanes_that_hold_another_type(other):
    body = f"""a = x[i]
if i < 2:
    a = {other}
    if i < 1:
        a = y[i]
        out[i] = a
    else:
        out[i] = a * 2
else:
    a = a + 1
    out[i] = a"""
    x = np.array([0, 0, 2**53, -(2**60) - 7, 2**62 + 1])
    found, _ = run(body, x, np.full(5, 2**53 + 1), np.zeros(5, np.int64))
    assert found.tolist() == [2**53 + 1, 14 if "7" in other else 1, 2**53 + 1, -(2**60) - 6, 2**62 + 2]


# --- division, shifts, powers ---


@pytest.mark.parametrize("sign", ["//", "%"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64])
def test_an_integer_divided_by_zero_is_zero_and_a_finding(sign, dtype):
    x = np.array([7, 8, 9], dtype)
    found, trace = run(f"out[i] = x[i] {sign} y[i]", x, np.array([2, 0, 3], dtype), np.ones(3, np.int64))
    assert found.tolist() == [eval(f"7 {sign} 2"), 0, eval(f"9 {sign} 3")]
    (finding,) = trace.errors
    assert (finding.kind, finding.line, finding.count) == ("zero-division", 4, 1)
    assert "thread 1" in finding.message and f"`{sign}`" in finding.message


def test_a_zero_that_is_written_out_is_a_finding_too():
    found, trace = run("out[i] = 7 // 0", np.ones(1, np.int64))
    assert found[0] == 0 and [f.kind for f in trace.errors] == ["zero-division"]


def test_lanes_that_do_not_divide_are_not_told():
    body = "if y[i] != 0:\n    out[i] = x[i] // y[i]\nelse:\n    out[i] = -1"
    found, trace = run(body, np.array([7, 8]), np.array([2, 0]), np.zeros(2, np.int64))
    assert found.tolist() == [3, -1] and trace.errors == ()


def test_a_complex_division_by_zero_is_a_finding_and_a_float_one_is_not():
    _, trace = run("out[i] = x[i] / y[i]", np.ones(1, complex), np.zeros(1, complex), np.zeros(1, complex))
    assert [f.kind for f in trace.errors] == ["zero-division"]
    found, trace = run("out[i] = x[i] / y[i]", np.ones(1), np.zeros(1), np.zeros(1))
    assert found[0] == np.inf and trace.errors == ()


def test_the_least_integer_divided_by_minus_one_is_zero():
    least = np.array([-(2**63)])
    found, _ = run("out[i] = x[i] // y[i] + x[i] % y[i]", least, np.array([-1]), np.ones(1, np.int64))
    assert found[0] == 0


def test_a_float_remainder_comes_from_the_rounded_quotient():
    x, y = np.array([1.0, -1.0, 7.5, 1e9], np.float32), np.array([0.1, 0.1, -2.0, 3.0], np.float32)
    found, _ = run("out[i] = x[i] % y[i]", x, y, np.zeros(4, np.float32))
    wide, narrow = x.astype(np.float64), y.astype(np.float64)
    rest = (np.abs(wide) - np.floor(np.abs(x) / np.abs(y)).astype(np.float64) * np.abs(narrow)).astype(np.float32)
    rest = np.where(x < 0, -rest, rest)
    rest = np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
    np.testing.assert_array_equal(found, rest)


@pytest.mark.needs("numba-cuda")
def test_numba_cuda_takes_the_quotient_in_place_of_integers_for_an_integer():
    for kind in CASTS.values():
        usual, in_place = (signature_in_numba(divide, (kind, kind)) for divide in (operator.truediv, operator.itruediv))
        assert (usual != in_place) == (("Div", kind) in REFUSED_IN_PLACE)


@pytest.mark.parametrize("target", ["v", "out[i]"])
def test_a_division_in_place_of_integers_is_refused(target):
    with pytest.raises(KernelError, match=rf"write `{re.escape(target)} = {re.escape(target)} / 2`"):
        run(f"v = x[i]\n{target} /= 2", np.array([7]), np.zeros(1, np.int64))
    found, _ = run("v = x[i]\nv = v / 2\nv /= 2\nout[i] = v", np.array([7]), np.zeros(1))
    assert found[0] == 1.75


@pytest.mark.parametrize("sign", ["<<", ">>"])
def test_a_shift_by_the_whole_width_empties_the_number(sign):
    x, y = np.array([-5, 5, 1, -1]), np.array([64, 70, 63, -1])
    found, _ = run(f"out[i] = x[i] {sign} y[i]", x, y, np.ones(4, np.int64))
    assert found.tolist() == ([0, 0, -(2**63), 0] if sign == "<<" else [-1, 0, 0, -1])


@pytest.mark.parametrize("text", ["a ** b", "pow(a, b)", "a ** 3", "a ** -1", "a ** 5"])
def test_powers_have_numbas_value(text):
    whole = np.array([2, -1, 3, 10, -2, 1])
    exponents = np.array([10, 3, 0, 5, 3, -4])
    for x, y in ((whole, exponents), (whole.astype(np.float32) / 3, exponents), (np.abs(whole) / 7, exponents / 3)):
        function = njit(run_cell(f"def function(a, b):\n    return {text}")["function"], error_model="numpy")
        found, _ = run(f"a, b = x[i], y[i]\nout[i] = {text}", x, y, np.zeros(6))
        np.testing.assert_array_equal(found, [function(a, b) for a, b in zip(x, y)])


def test_zero_to_a_negative_power_is_the_least_integer():
    found, _ = run("out[i] = x[i] ** y[i]", np.array([0]), np.array([-2]), np.zeros(1, np.int64))
    assert found[0] == -(2**63)


@pytest.mark.parametrize("digits", [0, 1, 3, -1, 15])
def test_round_to_digits_has_numbas_value(digits):
    x = np.array([2.675, -1.25, 0.5, 1234.5678, 15.0, np.inf])
    function = njit(run_cell("def function(x, n):\n    return round(x, n)")["function"])
    found, _ = run("out[i] = round(x[i], y[i])", x, np.full(6, digits), np.zeros(6))
    np.testing.assert_array_equal(found, [function(v, digits) for v in x])


def test_min_and_max_of_two_floats_leave_nan_out():
    x = np.array([np.nan, 1.0])
    found, _ = run("out[i] = min(x[i], 2.0) + max(2.0, x[i])", x, np.zeros(2))
    assert found.tolist() == [4.0, 3.0]


def test_divmod_gives_a_tuple():
    found, _ = run("q, r = divmod(x[i], y[i])\nout[i] = q * 100 + r", np.array([-7]), np.array([3]), np.zeros(1))
    assert found[0] == -3 * 100 + 2


WHOLE = [name for name in NAMES if "int" in name]
PYTHON = {"//": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0}


@pytest.mark.parametrize(
    "operation", ["Add", "Sub", "Mult", "FloorDiv", "Mod", "BitAnd", "BitOr", "BitXor", "LShift", "Pow"]
)
def test_integers_of_every_width_wrap_around_as_numbas_do(operation):
    function, sign = BINARY[operation]
    pairs = [(a, b) for a in WHOLE for b in WHOLE]
    pairs = [(a, b, numba_types.resolve(function, (SCALARS[a], SCALARS[b]))[0]) for a, b in pairs]
    pairs = [pair for pair in pairs if isinstance(pair[2], types.Integer)]
    lines = [f"out[{i}, i] = x_{a}[i] {sign} y_{b}[i]" for i, (a, b, _) in enumerate(pairs)]
    inputs = ", ".join(f"{side}_{name}" for side in "xy" for name in WHOLE)
    body = "\n    ".join(["i = cuda.grid(1)", *lines])
    kernel = kernel_in(f"@cuda.jit\ndef kernel({inputs}, out):\n    {body}")
    rng = np.random.default_rng(6)
    small = {"LShift": 8, "Pow": 4}.get(operation)
    x, y = ({name: whole_numbers(rng, name, limit) for name in WHOLE} for limit in (None, small))
    found = labkit.simulate(kernel, 1, 16, *x.values(), *y.values(), np.zeros((len(pairs), 16), np.uint64)).outputs[-1]
    for (a, b, kind), row in zip(pairs, found):
        for one, other, result in zip(x[a].tolist(), y[b].tolist(), row.tolist()):
            expected = PYTHON.get(sign, function)(wrapped(one, kind), wrapped(other, kind))
            assert result == wrapped(expected, kind) % 2**64, (a, b, one, other)


def wrapped(value, kind):
    """A whole number as an integer type holds it."""
    value %= 2**kind.bitwidth
    return value - 2**kind.bitwidth if kind.signed and value >= 2 ** (kind.bitwidth - 1) else value


def whole_numbers(rng, name, limit):
    limits = np.iinfo(name)
    low, high = (limits.min, limits.max) if limit is None else (0, limit)
    return rng.integers(low, high, 16, name, endpoint=limit is None)


# --- operations that are counted ---------------------------------------------------------------------

POWERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, -1, -3)


@pytest.mark.parametrize("exponent", POWERS)
def test_a_power_counts_the_products_that_it_stands_for(exponent):
    _, trace = run(f"v = x[i]\nout[i] = v**{exponent}", np.full(4, 2, np.float32), np.zeros(4, np.float32))
    steps = bin(abs(exponent))[3:]  # square for each binary digit after the first, and multiply for each 1
    assert trace.counters.flops == 4 * (len(steps) + steps.count("1") + (exponent < 0))


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("exponent", POWERS)
def test_numba_cuda_compiles_a_power_to_these_products(exponent):
    from numba import cuda

    def kernel(x, out):
        v = x[0]
        out[0] = v**exponent

    array = types.Array(types.float32, 1, "C")
    ptx, _ = cuda.compile_ptx(kernel, (array, array), cc=(9, 0))
    _, trace = run(f"v = x[i]\nout[i] = v**{exponent}", np.ones(1, np.float32), np.zeros(1, np.float32))
    assert len(re.findall(r"\b(?:mul|rcp\.rn)\.f32", ptx)) == trace.counters.flops


@pytest.mark.parametrize(("text", "flops"), [("v**2.0", 0), ("z + z", 2), ("z * z", 6), ("z / z", 9), ("z**2", 0)])
def test_what_else_counts(text, flops):
    z = np.ones(4, np.complex64)
    _, trace = run(f"v = x[i]\nz = y[i]\nw = {text}", np.ones(4, np.float32), z, np.zeros(4))
    assert trace.counters.flops == 4 * flops
