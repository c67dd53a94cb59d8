"""Loops over arrays, tuples, `enumerate`, `zip` and `flat`, and their `else`, run as in Python."""

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import cuda

BODIES = {
    "a row": "for v in x[i]:\n    s += v",
    "rows": "for row in x:\n    s += row[1]",
    "enumerate": "for n, v in enumerate(x[i], 5):\n    s += n * v",
    "zip": "for a, b in zip(x[i], x[0]):\n    s += a * b",
    "enumerate of zip": "for n, (a, b) in enumerate(zip(x[i], x[1])):\n    s += n * (a - b)",
    "zip of ranges": "for a, b in zip(range(2, 20, 3), range(i)):\n    s += a * b",
    "a tuple": "for v in (1.0, 2.0, x[i, 0]):\n    s += v",
    "flat": "for v in x.flat:\n    s += v",
    "flat of a slice": "for v in x[1:3, 1:].flat:\n    s = 2 * s + v",
    "else without break": "for j in range(3):\n    s += j\nelse:\n    s += 100",
    "else and break": "for j in range(6):\n    if j == i:\n        s += 1\n        break\nelse:\n    s += 100",
    "else of while": "j = 0\nwhile j < 5:\n    if j == i:\n        break\n    j += 1\nelse:\n    s += 50\ns += j",
    "return in else": "for j in range(4):\n    if j == i:\n        break\nelse:\n    y[i] = -1\n    return",
}


@pytest.mark.parametrize("what", BODIES)
def test_loops_are_pythons(what):
    rng = np.random.default_rng(2)
    x, y = rng.integers(1, 9, (32, 3)).astype(np.float64), np.zeros(32)
    body = "\n".join("    " + line for line in ["s = 0.0", *BODIES[what].splitlines(), "y[i] = s"])
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n{body}")
    scope, expected = {}, y.copy()
    exec(f"def thread(i, x, y):\n{body}", scope)
    for i in range(32):
        scope["thread"](i, x, expected)
    trace = labkit.simulate(kernel, 1, 32, x, y)
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], expected)


def test_literal_unroll_takes_values_of_several_types():
    from numba import literal_unroll

    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(y):
            n = 0
            for v in literal_unroll((1, 2.5, True)):
                y[n] = v
                n += 1
        """,
        literal_unroll=literal_unroll,
    )
    np.testing.assert_array_equal(labkit.simulate(kernel, 1, 1, np.zeros(3)).outputs[0], [1, 2.5, 1])


REDUCTIONS = "sum prod mean var std min max nanmin nanmax nansum nanprod nanmean all any count_nonzero".split()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("values", [[[3.0, 1.5], [-2.0, 4.0]], [[0.0, np.nan], [2.0, 1.0]]])
def test_numpys_reductions_are_each_threads_own(name, values):
    x = np.array(values)
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y):\n    y[cuda.threadIdx.x] = np.{name}(x)")
    trace = labkit.simulate(kernel, 1, 2, x, np.zeros(2))
    assert trace.errors == ()
    np.testing.assert_allclose(trace.outputs[1], float(getattr(np, name)(x)), rtol=1e-15)
    assert {c.site.line for c in trace.sites} == {trace.first_line + 2}  # not a line of the simulator's own files


def test_a_numpy_function_of_arrays_writes_into_the_last():
    kernel = kernel_in("@cuda.jit\ndef kernel(x, y, z):\n    np.arctan2(x, y, z)\n    np.cos(z, z)")
    x, y = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    np.testing.assert_allclose(
        labkit.simulate(kernel, 1, 1, x, y, np.zeros((2, 3))).outputs[2], np.cos(np.arctan2(x, y))
    )


@cuda.jit
def unsigned_bounds(n, out):
    t = np.uint32(cuda.threadIdx.x)
    trips = 0
    for _ in range(t, np.uint32(n) * np.uint32(n), 4):
        trips += 1
    out[t] = trips


def test_a_range_without_signs_is_empty_where_it_begins_behind_its_end():
    out = labkit.simulate(unsigned_bounds, 1, 32, 3, np.zeros(32, np.int64)).outputs[1]
    assert out.tolist() == [len(range(t, 9, 4)) for t in range(32)]
