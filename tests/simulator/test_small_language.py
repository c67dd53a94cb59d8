"""Small parts of the kernel language: dtypes, the operator module, and arguments that are no plain array or number."""

import math
import operator
from collections import namedtuple
from operator import add as plus

import numpy as np
import pytest
from cells import kernel_in
from numba import from_dtype, types
from numba_oracle import variable_types

import labkit
from labkit import cuda
from labkit.simulator import host
from labkit.simulator.arguments import typed_arguments
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.language import OPERATORS
from labkit.simulator.translate import translate
from labkit.simulator.values import Array

F32 = np.float32


def types_of(kernel, *kinds):
    """Types of the kernel's variables, ours and numba's."""
    ours = tuple(
        Array(k.dtype, k.ndim, "global", n) if isinstance(k, types.Array) else k
        for n, k in zip(kernel.py_func.__code__.co_varnames, kinds)
    )
    return translate(kernel.py_func, ours).variables, variable_types(kernel.py_func, kinds)


# --- dtypes ----------------------------------------------------------------------------------------


@cuda.jit
def of_its_dtype(x, out):
    kind = x.dtype
    own = cuda.local.array(2, x.dtype)
    shared = cuda.shared.array(32, dtype=kind)
    i = cuda.grid(1)
    zero = x.dtype.type(0)
    own[0] = kind.type(3.7)
    shared[i] = own[0] + zero
    out[i] = shared[i] + x[i]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint8, np.complex64])
def test_the_dtype_of_an_array_makes_arrays_and_numbers(dtype):
    trace = labkit.simulate(of_its_dtype, 1, 32, np.ones(32, dtype), np.zeros(32, dtype))
    np.testing.assert_array_equal(trace.outputs[1], np.full(32, dtype(3.7) + dtype(1)))
    assert trace.array("own").dtype == trace.array("shared").dtype == np.dtype(dtype).name


@pytest.mark.needs("numba-cuda")
def test_numbers_of_an_arrays_dtype_have_numbas_type():
    array = types.Array(types.float32, 1, "A")

    @cuda.jit
    def kernel(x, out):
        zero = x.dtype.type(0)
        kind = x.dtype
        one = kind.type(1)
        out[0] = zero + one

    ours, theirs = types_of(kernel, array, array)
    assert ours == {n: k for n, k in theirs.items() if n in ours} and ours["zero"] == {types.float32}


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.int32, np.complex128, np.dtype([("a", "i4"), ("b", "i1")])])
def test_an_array_knows_its_bytes(dtype):
    @cuda.jit
    def kernel(x, out):
        out[0] = x.itemsize
        out[1] = x.nbytes

    x = np.zeros((4, 3), dtype)
    assert labkit.simulate(kernel, 1, 1, x, np.zeros(2, np.int64)).outputs[1].tolist() == [x.itemsize, x.nbytes]


def test_a_dtype_goes_to_a_device_function():
    @cuda.jit(device=True)
    def made(kind):
        return kind(2.9)

    @cuda.jit
    def kernel(x, out):
        out[0] = made(x.dtype)

    assert labkit.simulate(kernel, 1, 1, np.zeros(1, np.int32), np.zeros(1)).outputs[1][0] == 2


def test_local_arrays_of_the_records_that_an_array_holds():
    pair = np.dtype([("a", "i4"), ("b", "f4")], align=True)

    @cuda.jit
    def kernel(x, out):
        own = cuda.local.array(1, x.dtype)
        own[0].a = 4
        out[0] = own[0].a

    assert labkit.simulate(kernel, 1, 1, np.zeros(1, pair), np.zeros(1)).outputs[1][0] == 4


# --- the operator module ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_functions_of_the_operator_module_are_operators(name):
    function, given = getattr(operator, name), (7, 2)
    count = 1 if name in ("neg", "pos", "invert", "not_") else 2
    call = f"operator.{name}({', '.join(('n[i]', 'm[i]')[:count])})"
    kernel = kernel_in(
        f"@cuda.jit\ndef kernel(n, m, out):\n    i = cuda.grid(1)\n    value = {call}\n    out[i] = value",
        operator=operator,
    )
    n, m = (np.full(32, v, np.int64) for v in given)
    assert labkit.simulate(kernel, 1, 32, n, m, np.zeros(32)).outputs[2][0] == function(*given[:count])


@pytest.mark.needs("numba-cuda")
def test_functions_of_the_operator_module_have_numbas_types():
    @cuda.jit
    def kernel(x, n):
        total = 0
        for k in range(3):
            total = operator.add(total, x[k])
        a = operator.truediv(n[0], 2)
        b = operator.pow(x[0], 2)
        c = operator.xor(n[0], n[1])
        d = operator.not_(operator.lt(x[0], 2.0))
        x[0] = plus(a + b + c, total) + d

    arrays = types.Array(types.float32, 1, "A"), types.Array(types.int32, 1, "A")
    ours, theirs = types_of(kernel, *arrays)
    assert {n: ours[n] for n in "abcd"} == {n: theirs[n] for n in "abcd"} and ours["total"] <= theirs["total"]


def test_other_functions_of_the_operator_module_are_refused():
    kernel = kernel_in("@cuda.jit\ndef kernel(x):\n    x[0] = operator.matmul(x[0], x[0])\n", operator=operator)
    with pytest.raises(KernelError, match=r"`operator.matmul` is not in the kernel language"):
        labkit.simulate(kernel, 1, 1, np.zeros(1))


# --- methods of numbers ----------------------------------------------------------------------------


def test_bit_count_counts_ones():
    @cuda.jit
    def kernel(n, out):
        i = cuda.grid(1)
        out[i] = n[i].bit_count()

    n = np.random.default_rng(1).integers(-(2**31), 2**31, 64).astype(np.int32)
    out = labkit.simulate(kernel, 2, 32, n, np.zeros(64, np.int64)).outputs[1]
    np.testing.assert_array_equal(out, [bin(v & 0xFFFFFFFF).count("1") for v in n.tolist()])
    with pytest.raises(KernelError, match="counts the ones of an integer, not of float32"):
        labkit.simulate(kernel, 2, 32, n.astype(F32), np.zeros(64))


def test_text_makes_a_float():
    kernel = kernel_in("@cuda.jit\ndef kernel(out):\n    out[0] = float('-inf')\n    out[1] = float('1.5')")
    assert labkit.simulate(kernel, 1, 1, np.zeros(2)).outputs[0].tolist() == [-math.inf, 1.5]
    with pytest.raises(KernelError, match=r"`float\('x'\)` has no number in its text"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(out):\n    out[0] = float('x')"), 1, 1, np.zeros(1))


# --- kernels' arguments and arrays ------------------------------------------------------------------


def test_a_default_of_an_argument_is_for_others_to_use():
    kernel = kernel_in("@cuda.jit\ndef kernel(out, scale=2):\n    out[0] = scale")
    assert labkit.simulate(kernel, 1, 1, np.zeros(1), 5).outputs[0][0] == 5
    with pytest.raises(LaunchError, match="pass `scale` as well"):
        labkit.simulate(kernel, 1, 1, np.zeros(1))


def test_a_device_function_fills_in_its_defaults():
    device = "@cuda.jit(device=True)\ndef of(a, b=2, c=0.5):\n    return a * 100 + b * 10 + c\n\n\n"
    text = "@cuda.jit\ndef kernel(out):\n    out[0] = of(1)\n    out[1] = of(1, 3)\n    out[2] = of(1, 3, 4)"
    assert labkit.simulate(kernel_in(device + text), 1, 1, np.zeros(3)).outputs[0].tolist() == [120.5, 130.5, 134]
    with pytest.raises(KernelError, match=r"`of\(a, b, c\)`: missing a required argument: 'a'"):
        labkit.simulate(kernel_in(device + "@cuda.jit\ndef kernel(out):\n    out[0] = of()"), 1, 1, np.zeros(3))


TWO = np.float32(2)


@cuda.jit(device=True)
def weighted(a, b=TWO, c=1.0):
    return a * b + c


@cuda.jit
def call_by_name(out):
    out[0] = weighted(2.0, b=3.0)
    out[1] = weighted(b=3.0, a=4.0)
    out[2] = weighted(1.0, c=5.0)
    out[3] = weighted(c=out[2], b=1, a=2)


def test_arguments_of_a_device_function_go_by_name():
    trace = labkit.simulate(call_by_name, 1, 1, np.zeros(4))
    assert trace.outputs[0].tolist() == [7, 13, 7, 9]


@cuda.jit
def unknown_name(out):
    out[0] = weighted(1.0, d=2.0)


@cuda.jit
def name_given_twice(out):
    out[0] = weighted(1.0, a=2.0)


@cuda.jit
def name_left_out(out):
    out[0] = weighted(b=2.0)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (unknown_name, "got an unexpected keyword argument 'd'"),
        (name_given_twice, "multiple values for argument 'a'"),
        (name_left_out, "missing a required argument: 'a'"),
    ],
)
def test_arguments_that_do_not_bind_are_refused_at_the_call(kernel, reason):
    with pytest.raises(KernelError, match=rf"`weighted\(a, b, c\)`: {reason}") as refused:
        labkit.simulate(kernel, 1, 1, np.zeros(1))
    assert refused.value.line == kernel.py_func.__code__.co_firstlineno + 2


def test_a_local_array_has_as_many_elements_as_another_has_dimensions():
    @cuda.jit
    def kernel(x, out):
        place = cuda.local.array(x.ndim, np.int64)
        for axis in range(x.ndim):
            place[axis] = x.shape[axis]
        out[0] = place[0] * 10 + place[1]

    assert labkit.simulate(kernel, 1, 1, np.zeros((2, 3)), np.zeros(1)).outputs[1][0] == 23


# --- arrays without dimensions ---------------------------------------------------------------------


@cuda.jit
def into_one(x, r):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(r, (), x[i])


@cuda.jit
def last(x, r):
    if cuda.grid(1) == 0:
        r[()] = x[x.size - 1] + r[()]


def test_an_array_without_dimensions_holds_one_element():
    for r in (np.array(2.0, F32), cuda.to_device(np.array(2.0, F32))):
        last[1, 32](np.arange(8, dtype=F32), r)
        assert np.asarray(r)[()] == 9
    trace = labkit.simulate(last, 1, 32, np.arange(8, dtype=F32), np.array(2.0, F32))
    assert trace.outputs[1].shape == () and not trace.errors
    assert [(s.accesses, s.sectors) for s in trace.sites if s.site.array == "r"] == [(1, 1), (1, 1)]


def test_an_array_without_dimensions_races_as_others_do():
    @cuda.jit
    def kernel(r):
        r[()] = cuda.grid(1)

    assert [f.kind for f in labkit.simulate(kernel, 2, 32, np.array(0)).errors] == ["race"]


def test_an_array_without_dimensions_takes_no_index():
    @cuda.jit
    def kernel(r):
        r[0] = 1

    with pytest.raises(KernelError, match=r"`r` has no dimensions, and its one element is `r\[\(\)\]`"):
        labkit.simulate(kernel, 1, 1, np.array(0))

    @cuda.jit
    def whole(r):
        r[()] = r + 1

    with pytest.raises(KernelError, match=r"pick an element, `r\[\(\)\]`"):
        labkit.simulate(whole, 1, 1, np.array(0))


# --- arrays that NumPy derives from its own --------------------------------------------------------


def test_a_masked_array_is_refused():
    masked = np.ma.array(np.arange(8.0), mask=np.arange(8) > 3)
    for given in (masked, (masked,)):
        with pytest.raises(LaunchError, match="is a masked array, which no kernel takes"):
            labkit.simulate(kernel_in("@cuda.jit\ndef kernel(x):\n    pass"), 1, 8, given)
    with pytest.raises(LaunchError, match="is a masked array, which no kernel takes"):
        labkit.simulate(kernel_in("@cuda.jit('void(f8[:])')\ndef kernel(x):\n    pass"), 1, 8, masked)
    with pytest.raises(LaunchError, match=r"^the array is a masked array, .*; pass `array.filled\(0\)`"):
        host.to_device(masked)


def test_gaps_between_elements_are_refused_by_the_arrays_name_if_it_has_one():
    gaps = np.arange(8.0)[::2]
    with pytest.raises(LaunchError, match=r"^the elements of `x` do not .* pass `np.ascontiguousarray\(x\)`"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(x):\n    pass"), 1, 8, gaps)
    with pytest.raises(LaunchError, match=r"^the elements of the array do not .* pass `np.ascontiguousarray\(array\)`"):
        host.to_device(gaps)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_an_array_of_two_dimensions():
    @cuda.jit
    def kernel(x):
        x[0, 1] += x[0].size

    matrix = np.matrix(np.arange(4.0))
    assert labkit.simulate(kernel, 1, 1, matrix).outputs[0].tolist() == [[0, 5, 2, 3]]
    kernel[1, 1](matrix)
    assert matrix.tolist() == [[0, 5, 2, 3]]


# --- tuples as arguments ---------------------------------------------------------------------------

Problem = namedtuple("Problem", "x scale size")


@cuda.jit
def of_a_pair(pair, out):
    i = cuda.grid(1)
    x, scale = pair
    if i < out.size:
        out[i] = pair[0][i] * scale + x[i]


@cuda.jit
def of_a_problem(p, outs):
    i = cuda.grid(1)
    if i < p.size:
        outs[0][i] = p.x[i] * p.scale
        outs[1][i] += p[2]


X = np.arange(40, dtype=F32)


def test_a_tuple_of_arrays_and_numbers_is_an_argument():
    out = np.zeros_like(X)
    of_a_pair[2, 32]((X, F32(2)), out)
    np.testing.assert_array_equal(out, 3 * X)
    trace = labkit.simulate(of_a_pair, 2, 32, (X, F32(2)), np.zeros_like(X))
    assert {a.name for a in trace.arrays} == {"pair[0]", "out"} and trace.outputs[0][1] == 2
    assert [s.site.array for s in trace.sites] == ["pair[0]", "pair[0]", "out"]


@pytest.mark.parametrize("place", [np.copy, cuda.to_device])
def test_a_named_tuple_is_an_argument_and_arrays_in_tuples_are_written_back(place):
    outs = place(np.zeros_like(X)), place(np.ones_like(X))
    of_a_problem[2, 32](Problem(X, F32(3), X.size), outs)
    np.testing.assert_array_equal(outs[0], 3 * X)
    np.testing.assert_array_equal(outs[1], np.full(40, 41))
    trace = labkit.simulate(of_a_problem, 2, 32, Problem(X, F32(3), X.size), outs)
    assert isinstance(trace.outputs[0], Problem) and not trace.errors
    np.testing.assert_array_equal(trace.outputs[1][1], np.full(40, 81))


def test_findings_name_the_array_in_a_tuple():
    trace = labkit.simulate(of_a_problem, 2, 32, Problem(X[:39], F32(3), 40), (X.copy(), X.copy()))
    assert [(f.kind, f.array, f.index) for f in trace.errors] == [("bounds", "p.x", (39,))]


@pytest.mark.needs("numba-cuda")
def test_numbers_of_tuples_have_numbas_types():
    array = types.Array(types.float32, 1, "A")

    @cuda.jit
    def kernel(pair, problem):
        a = pair[1]
        b = problem.scale
        c = problem[2] + a
        d = problem.x[0]
        pair[0][0] = a + b + c + d

    kinds = types.Tuple((array, types.int32)), types.NamedTuple((array, types.float32, types.int64), Problem)
    theirs = variable_types(kernel.py_func, kinds)
    arguments, _ = typed_arguments(["pair", "problem"], [(X, np.int32(1)), Problem(X, F32(1), 1)])
    ours = translate(kernel.py_func, arguments).variables
    assert {n: ours[n] for n in "abcd"} == {n: theirs[n] for n in "abcd"}


# --- no None, and wide integers as arguments -----------------------------------------------------------


@cuda.jit
def with_an_option(x, bias, out):
    i = cuda.grid(1)
    if bias is None:
        out[i] = x[i]
    else:
        out[i] = x[i] + bias[i]


def test_an_array_is_not_none_and_numba_passes_no_none():
    x = np.arange(32.0)
    np.testing.assert_array_equal(labkit.simulate(with_an_option, 1, 32, x, 2 * x, np.zeros(32)).outputs[2], 3 * x)
    with pytest.raises(LaunchError, match="`bias` is None"):
        labkit.simulate(with_an_option, 1, 32, x, None, np.zeros(32))


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, -(2**63)])
def test_an_integer_as_an_argument_has_64_bits(value):
    kernel = kernel_in("@cuda.jit\ndef kernel(n, out):\n    out[0] = n")
    dtype = np.uint64 if value >= 2**63 else np.int64
    assert labkit.simulate(kernel, 1, 1, value, np.zeros(1, dtype)).outputs[1][0] == value


# --- functions under another name ------------------------------------------------------------------


def test_functions_and_places_may_be_given_a_name():
    @cuda.jit
    def named(out):
        place = cuda.threadIdx
        root = math.sqrt
        add = cuda.atomic.add
        single = F32
        add(out, place.x, root(single(place.x)))

    out = labkit.simulate(named, 1, 32, np.zeros(32, F32)).outputs[0]
    np.testing.assert_array_equal(out, np.sqrt(np.arange(32, dtype=F32)))


# --- records as arguments --------------------------------------------------------------------------

PLACE = np.dtype([("a", "i4"), ("b", "f4"), ("v", "f4", 3)], align=True)


@cuda.jit
def into_a_record(r, out):
    i = cuda.grid(1)
    if i == 0:
        r.b = r.a + 0.5
        r["v"][2] = 7
    if i < 3:
        out[i] = r.v[i] + r["a"]


def test_a_record_is_an_argument_and_is_written_back():
    record = np.array([(4, 0, (1, 2, 3))], PLACE)[0]
    out = np.zeros(3, F32)
    trace = labkit.simulate(into_a_record, 1, 1, record, out)
    assert (trace.outputs[0]["b"], record["b"]) == (4.5, 0) and not trace.errors
    into_a_record[1, 1](record, out)
    assert record["b"] == 4.5 and record["v"].tolist() == [1, 2, 7] and out[0] == 5


def test_all_threads_read_the_fields_of_one_record():
    @cuda.jit
    def kernel(r, out):
        out[cuda.grid(1)] = r.a + r.b

    record = np.array([(4, 0.5, (1, 2, 3))], PLACE)[0]
    trace = labkit.simulate(kernel, 1, 32, record, np.zeros(32, F32))
    assert trace.errors == () and set(trace.outputs[1]) == {4.5}
    loads = [row for site, row in zip(trace.samples.site, trace.samples.index) if trace.sites[site].site.array == "r"]
    np.testing.assert_array_equal(loads, np.zeros((2, 32)))


def test_a_record_kept_in_a_variable_gives_its_fields_by_name_in_brackets_too():
    @cuda.jit
    def kernel(records, out):
        one = records[1]
        out[0] = one["a"] + one.b

    records = np.array([(4, 0, (1, 2, 3)), (5, 6, (1, 2, 3))], PLACE)
    assert labkit.simulate(kernel, 1, 1, records, np.zeros(1)).outputs[1][0] == 11


@pytest.mark.needs("numba-cuda")
def test_fields_of_a_record_have_numbas_types():
    @cuda.jit
    def kernel(r):
        a = r.a
        b = r["b"] + a
        r.b = b

    kinds, _ = typed_arguments(["r"], [np.zeros(1, PLACE)[0]])
    ours, theirs = translate(kernel.py_func, kinds).variables, variable_types(kernel.py_func, [from_dtype(PLACE)])
    assert {n: ours[n] for n in "ab"} == {n: theirs[n] for n in "ab"}
