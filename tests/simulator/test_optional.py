"""Device functions that return a number on one path and None on another, held against numba's compiler for CPUs."""

import numpy as np
import pytest
from cells import kernel_in
from numba import njit

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError

THREADS = 12


def even(i):
    if i % 2 == 0:
        return i


def sign(i):
    if i > 6:
        return 1.5
    elif i < 6:
        return -1


def doubled(i):
    value = even(i)
    if value is None:
        return None
    return value * 2


def passed_on(i):
    return even(i)


def found(i, n):
    for k in range(n):
        if k * k > i:
            return k
    return


def is_none(value):
    return value is None


def surely(i):
    if i > 3:
        return 1
    else:
        return 2


HELPERS = (even, sign, doubled, passed_on, found, is_none, surely)

BODIES = """
v = even(i)
if v is not None:
    out[i] = v
else:
    out[i] = -1
---
out[i] = sign(i)
---
out[i] = 3 + even(i) * 2
---
v = doubled(i)
out[i] = -1 if v is None else v
---
v = doubled(i)
if v is not None and v > 3:
    out[i] = v
---
v = passed_on(i)
if v is None or v > 3:
    out[i] = 1
---
v = even(i)
if v == None:
    out[i] = 1
if v != None:
    out[i] = v + 2
---
v = found(i, 3)
if v is None:
    return
out[i] = v
---
out[i] = is_none(even(i)) + 2 * is_none(i)
---
for k in range(3):
    v = even(i + k)
    if v is None:
        continue
    out[i] += v
---
even(i)
out[i] = max(even(i), 3) + abs(sign(i))
---
v = even(i)
while v < 100:
    v = even(v + 40)
out[i] = v
---
out[i] = surely(i)
out[i] += int(even(i))
---
if i > 3:
    return None
out[i] = 5
""".split("---")


def helpers(jit):
    """The functions above, compiled; each finds those before it."""
    made = {}
    for function in HELPERS:
        scope = type(function)(function.__code__, {**globals(), **made}, function.__name__)
        made[function.__name__] = jit(scope)
    return made


@pytest.fixture(scope="module")
def on_cpu():
    return helpers(njit)


@pytest.fixture(scope="module")
def on_lanes():
    return helpers(cuda.jit)  # a function needs no `device=True` to be called


def indented(body):
    return "".join(f"    {line}\n" for line in body.strip().splitlines())


@pytest.mark.parametrize("body", BODIES)
def test_what_may_be_none_behaves_as_compiled(body, on_cpu, on_lanes):
    expected, raised, scope = np.zeros(THREADS), set(), dict(on_cpu)
    exec(f"def one(out, i):\n{indented(body)}", scope)
    one = njit(scope["one"])
    for i in range(THREADS):
        try:
            one(expected, i)
        except TypeError as error:
            raised.add(str(error))
    kernel = kernel_in(f"@cuda.jit\ndef kernel(out):\n    i = cuda.grid(1)\n{indented(body)}", **on_lanes)
    trace = labkit.simulate(kernel, 1, THREADS, np.zeros(THREADS))
    np.testing.assert_array_equal(trace.outputs[0], expected)
    assert {f.kind for f in trace.errors} == ({"raised"} if raised else set())
    assert all(any(f"TypeError: {text}." in f.message for text in raised) for f in trace.errors)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("if v:\n        out[i] = 1", r"`v` may be None, and numba takes no such value for a condition"),
        ("out[v] = 1", r"`v` may be None, and numba takes no such value for an index"),
        ("out[i] = float(v)", r"numba takes no such value for `float`; where it is not None, `v \+ 0` is a number"),
        ("out[i] = v[0]", "not an array"),
        ("a, b = v", "cannot be unpacked"),
        ("if i > 2:\n        v = 3\n    out[i] = v", "`v` is int64 on one path and int64 or None on another"),
        ("return even(i)", "a kernel returns nothing"),
        ("return i", "a kernel returns nothing"),
    ],
)
def test_where_none_cannot_stand_there_is_a_sentence(line, message, on_lanes):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(out):\n    i = cuda.grid(1)\n    v = even(i)\n    {line}\n", **on_lanes)
    with pytest.raises(KernelError, match=message):
        labkit.simulate(kernel, 1, THREADS, np.zeros(THREADS))


def test_a_kernel_may_return_what_a_function_without_a_value_returns():
    source = """
    @cuda.jit(device=True)
    def set_one(out, i):
        out[i] = 1

    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i > 3:
            return set_one(out, i)
        out[i] = 2
    """
    trace = labkit.simulate(kernel_in(source), 1, 6, np.zeros(6))
    assert trace.errors == () and [*trace.outputs[0]] == [2, 2, 2, 2, 1, 1]


def test_a_tuple_is_returned_on_every_path():
    source = """
    @cuda.jit(device=True)
    def pair(i):
        if i > 3:
            return i, i

    @cuda.jit
    def kernel(out):
        a, b = pair(cuda.grid(1))
        out[cuda.grid(1)] = a
    """
    with pytest.raises(KernelError, match="`pair` returns a tuple of 2 values on one path and nothing on another"):
        labkit.simulate(kernel_in(source), 1, 6, np.zeros(6))
