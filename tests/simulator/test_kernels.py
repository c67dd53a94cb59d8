"""Kernels of every kind compute what they must, with numba's types, and without an error finding."""

import numpy as np
import pytest
from cells import kernel_in, line_of, run_cell
from numba import literal_unroll, njit, types
from numba_oracle import variable_types

import labkit
from kernels import cases
from labkit import cuda
from labkit.simulator import numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.translate import translate
from labkit.simulator.translator.operators import BINARY
from labkit.simulator.values import Array

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_computes_the_expected_values_and_finds_no_error(case):
    before = [np.copy(a) for a in case.arguments]
    trace = labkit.simulate(case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes)
    assert trace.errors == ()
    for position, expected in case.expected.items():
        np.testing.assert_allclose(trace.outputs[position], expected, rtol=case.tolerance, atol=case.tolerance)
    for kept, argument in zip(before, case.arguments):
        np.testing.assert_array_equal(kept, argument)


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("case", [c for c in CASES if c.name != "with_device_functions"], ids=lambda c: c.name)
def test_types_are_numbas(case):
    function = case.kernel.py_func
    kinds = tuple(Array(numba_types.type_of(a.dtype), a.ndim, "global") for a in case.arguments)
    theirs = [types.Array(kind.dtype, kind.ndim, "C") for kind in kinds]
    assert translate(function, kinds).variables == variable_types(bound_to_numba(function), theirs)


def bound_to_numba(function):
    """The same function with `cuda` bound to numba's module, which numba's typing knows."""
    from types import FunctionType

    import numba.cuda

    scope = {**function.__globals__, "cuda": numba.cuda}
    return FunctionType(function.__code__, scope, function.__name__, None, function.__closure__)


SCALARS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"])
def test_operators_give_numbas_type_for_every_pair_of_types(sign):
    whole = [s for s in SCALARS if not s.startswith("float") and s != "bool"]
    names = whole if sign in ("<<", ">>", "&", "|", "^") else SCALARS
    lines = [f"v_{a}_{b} = {a}_[i] {sign} {b}_[i]" for a in names for b in names]
    text = f"@cuda.jit\ndef kernel({', '.join(s + '_' for s in names)}):\n    i = cuda.grid(1)\n    "
    kernel = kernel_in(text + "\n    ".join(lines))
    arrays = [np.array([3]).astype(s) for s in names]
    values = labkit.simulate(kernel, 1, 1, *arrays, inspect=(0, 0)).steps[-1].variables
    operation = next(o for o, s in BINARY.values() if s == sign)
    for a in names:
        for b in names:
            kinds = tuple(numba_types.type_of(np.dtype(s)) for s in (a, b))
            expected, _ = numba_types.resolve(operation, kinds)
            found = values[f"v_{a}_{b}"]
            assert isinstance(found, float) == isinstance(expected, types.Float), (a, b)
            assert found == pytest.approx(operation(arrays[names.index(a)].item(), arrays[names.index(b)].item()))


SIGNED = ["-int32(5)", "-int8(100)", "-uint32(7)", "~uint8(3)", "-uint8(v)", "+v", "-v", "~v", "~uint8(v)", "-(v > 3)"]


@pytest.mark.parametrize("text", SIGNED)
def test_signs_give_numbas_type_and_value(text):
    casts = {n: getattr(types, n) for n in ("int8", "uint8", "int32", "uint32")}
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y):\n    v = x[0]\n    s = {text}\n    y[0] = s", **casts)
    function = njit(run_cell(f"def function(x):\n    v = x[0]\n    return {text}", **casts)["function"])
    x, y = np.array([5], np.int32), np.zeros(1)
    assert labkit.simulate(kernel, 1, 1, x, y).outputs[1][0] == function(x)
    kinds = (Array(types.int32, 1, "global"), Array(types.float64, 1, "global"))
    assert translate(kernel.py_func, kinds).variables["s"] == {function.nopython_signatures[0].return_type}


CROSSING = {
    "nested branches": """
        e = int8(100)
        if i < 3:
            e = math.sqrt(2)
        elif i < 6:
            e += e
        return e""",
    "a branch that reads": """
        e = uint8(7)
        if i < 3:
            e = 0.5
        else:
            e = -e
        return e""",
    "a loop that some lanes left": """
        e = 0
        for k in range(4):
            if k == i:
                e = 0.5
                break
            if i < 6:
                e = k
            else:
                e = int8(2)
        return e""",
    "a loop whose types settle late": """
        t = 0
        for k in range(3):
            if i > 3:
                late = t
            t = t + 0.5
        if i > 3:
            return late
        return t""",
    "the largest so far": """
        for k in range(i + 1):
            v = (k * 5) % 7
            if k == 0:
                best = v
            elif v > best:
                best = v
        return best""",
    "a value of an earlier trip": """
        seen = 0.0
        for k in range(3):
            for n in range(i):
                if n == 0:
                    kept = k
                elif n == 2:
                    seen += kept
                else:
                    kept = kept + 0.5
        return seen""",
    "an unrolled loop": """
        total = 0.0
        for value in literal_unroll((1, 2.5)):
            if i > 3 + value:
                kept = value
            if i > 4:
                total += kept
        return total""",
    "tuples": """
        t = (uint8(7), 0)
        if i < 3:
            t = (0.5, i)
        else:
            t = (-t[0], i)
        return t[0] + t[1]""",
}


@pytest.mark.parametrize("body", CROSSING.values(), ids=CROSSING)
def test_a_variable_may_have_another_type_on_another_path(body):
    names = dict(int8=types.int8, uint8=types.uint8, literal_unroll=literal_unroll)
    function = run_cell(f"def function(i):{body}", **names)["function"]
    device = f"@cuda.jit(device=True)\ndef function(i):{body}\n"
    kernel = run_cell(f"{device}\n@cuda.jit\ndef kernel(y):\n    y[cuda.grid(1)] = function(cuda.grid(1))", **names)
    found = labkit.simulate(kernel["kernel"], 1, 8, np.zeros(8)).outputs[0]
    np.testing.assert_array_equal(found, [njit(function)(i) for i in range(8)])


ON_ANOTHER_PATH = {
    "of a branch": """
        if i > 3:
            v = 1.5
        else:
            y[i] = v""",
    "of a loop": """
        for k in range(3):
            if k == i:
                v = k
            elif k > 1:
                y[i] = v""",
}


@pytest.mark.parametrize("body", ON_ANOTHER_PATH.values(), ids=ON_ANOTHER_PATH)
def test_a_thread_that_reads_what_another_path_sets_is_found(body):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(y):\n        i = cuda.grid(1){body}\n")
    (found,) = labkit.simulate(kernel, 1, 8, np.zeros(8)).errors
    assert "reads `v`, but nothing was assigned to it" in found.message and found.line == line_of(kernel, "y[i] = v")


@pytest.mark.parametrize("line", ["y[0] = v", "v += 1", "while v < 3: v += 1"])
def test_a_variable_that_is_read_before_the_line_that_sets_it_is_refused(line):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(y):\n    for k in range(3):\n        {line}\n        v = k\n")
    with pytest.raises(KernelError, match="`v` is read before anything was assigned to it"):
        labkit.simulate(kernel, 1, 8, np.zeros(8))


GROWING = {
    "in the loop": """
    b = uint8(250)
    for k in range(x[0]):
        b -= uint8(3)
        b *= x[0]
    """,
    "after the loop": """
    a = uint8(250)
    for k in range(2):
        for l in range(x[0]):
            a = x[0]
    b = a + a
    """,
    "of a call after the loop": """
    a = uint8(250)
    for k in range(x[0]):
        a = x[0] + k
    b = twice(a)
    """,
    "of a sign after the loop": """
    a = uint8(250)
    for k in range(x[0]):
        a = x[0] + k
    b = -a
    """,
}


@pytest.mark.parametrize("body", GROWING.values(), ids=GROWING)
def test_the_type_of_a_result_only_grows_while_loops_settle(body):
    twice = "def twice(a):\n    return a + a\n"
    function = run_cell(f"{twice}def function(x):{body}return b", uint8=types.uint8)
    function["twice"] = njit(function["twice"])
    function = njit(function["function"])
    kernel = kernel_in(
        f"@cuda.jit(device=True)\n{twice}@cuda.jit\ndef kernel(x, y):{body}y[0] = b", "kernel", uint8=types.uint8
    )
    x, y = np.array([3]), np.zeros(1)
    assert labkit.simulate(kernel, 1, 1, x, y).outputs[1][0] == function(x)
    kinds = (Array(types.int64, 1, "global"), Array(types.float64, 1, "global"))
    assert types.float64 in translate(kernel.py_func, kinds).variables["b"]
    assert function.nopython_signatures[0].return_type == types.float64


WHILE = """
    a, b = uint32(40000), x[0] + 0
    k = 0
    while k < x[0]:
        k += 1
        a, b = b, a
    k = 0
    while k < x[0]:
        k += 1
        a += uint8(x[0])
    """


def test_after_a_while_loop_a_variable_has_the_types_of_its_end():
    names = {"uint8": types.uint8, "uint32": types.uint32}
    function = njit(run_cell(f"def function(x):{WHILE}return a", **names)["function"])
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y):{WHILE}y[0] = a", "kernel", **names)
    x, y = np.array([3]), np.zeros(1)
    assert labkit.simulate(kernel, 1, 1, x, y).outputs[1][0] == function(x)
    kinds = (Array(types.int64, 1, "global"), Array(types.float64, 1, "global"))
    assert types.float64 not in translate(kernel.py_func, kinds).variables["a"]
    assert function.nopython_signatures[0].return_type == types.int64


def test_what_a_device_function_returns_has_one_type():
    text = """
        @cuda.jit(device=True)
        def pick(x):
            if x > 0:
                return 2**62
            return 0.5

        @cuda.jit
        def kernel(x, y):
            y[0] = pick(x[0]) * pick(x[0])
    """
    assert labkit.simulate(kernel_in(text, "kernel"), 1, 1, np.ones(1), np.zeros(1)).outputs[1][0] == 2.0**124


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_counters_do_not_depend_on_the_chunk_width(case, monkeypatch):
    from labkit.simulator import launch

    def counters():
        trace = labkit.simulate(case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes)
        return trace.counters, trace.sites

    wide = counters()
    monkeypatch.setattr(launch, "CHUNK_LANES", 1)
    assert counters() == wide


@pytest.mark.skipif(not cuda.on_gpu(), reason="compares with a GPU, and there is none")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_gpu_computes_the_same(case):
    simulated = labkit.simulate(case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes)
    arrays = [np.copy(a) for a in case.arguments]
    case.kernel[case.grid, case.block, 0, case.shared_bytes](*arrays)
    for ours, theirs in zip(simulated.outputs, arrays):
        np.testing.assert_allclose(ours, theirs, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("text", ["a or 7", "a and b", "a and b or 0.5", "not (a or b)", "(a > 1) or b", "b and a > 1"])
def test_and_and_or_give_an_operand_as_numba_does(text):
    kernel = kernel_in(
        f"@cuda.jit\ndef kernel(x, z, y):\n    i = cuda.grid(1)\n    a, b = x[i], z[i]\n    y[i] = {text}"
    )
    function = njit(run_cell(f"def function(a, b):\n    return {text}")["function"])
    x, z = np.array([0, 1, 2, 0], np.int32), np.array([5, 0, 3, 0], np.float32)
    found = labkit.simulate(kernel, 1, 4, x, z, np.zeros(4)).outputs[2]
    np.testing.assert_array_equal(found, [function(a, b) for a, b in zip(x, z)])


@pytest.mark.parametrize(
    ("text", "dtype"), [("-1", "uint8"), ("300", "uint8"), ("uint32(-1)", "int64"), ("int8(200)", "int64")]
)
def test_a_number_that_does_not_fit_wraps_around(text, dtype):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(y):\n    y[0] = {text}", uint32=types.uint32, int8=types.int8)
    function = njit(run_cell(f"def function(y):\n    y[0] = {text}", uint32=types.uint32, int8=types.int8)["function"])
    expected = np.zeros(1, dtype)
    function(expected)
    assert labkit.simulate(kernel, 1, 1, np.zeros(1, dtype)).outputs[0][0] == expected[0]


def test_an_array_is_known_by_its_own_name_wherever_it_is_used():
    text = (
        "@cuda.jit(device=True)\ndef copy(source, target, i):\n    target[i] = source[i]\n\n"
        "@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n    out = y\n    copy(x, out, i)\n    copy(y, x, i)\n"
    )
    trace = labkit.simulate(kernel_in(text, "kernel"), 1, 4, np.ones(4), np.zeros(4))
    assert [(s.site.kind, s.site.array) for s in trace.sites] == [
        ("load", "x"),
        ("store", "y"),
        ("load", "y"),
        ("store", "x"),
    ]


def test_a_race_under_another_name_is_seen():
    text = "@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n    out = y\n    out[0] += x[i]"
    trace = labkit.simulate(kernel_in(text), 1, 64, np.ones(64), np.zeros(1))
    assert {f.kind for f in trace.errors} == {"race"}
