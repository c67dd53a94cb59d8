"""`min`, `max` and `sum` of tuples, arrays and ranges, as numba's njit computes them."""

import numpy as np
import pytest
from cells import kernel_in
from numba import njit

import labkit
from labkit.simulator.errors import KernelError

N = 32


def arguments():
    x = np.sin(np.arange(N, dtype=np.float32)).astype(np.float32)
    return x, x.astype(np.float64).reshape(4, 8), np.arange(N, dtype=np.int16) - 9, np.zeros(N)


def kernel_of(body, head="@cuda.jit", start="i = cuda.grid(1)", parameters="x, grid, n, out"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(
        f"@cuda.jit\ndef kernel({parameters}):\n{lines}".replace("@cuda.jit", head), njit=njit, STEPS=(3, 1, 2)
    )


def in_numba(body):
    arrays = arguments()
    compiled = kernel_of(body, "@njit", "pass", "x, grid, n, out, i")
    for i in range(N):
        compiled(*arrays, i)
    return arrays[3]


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = min((i, 3)) + 100 * max((i, 3))",
        "out[i] = max((i, 3, x[i], 2.5))",
        "out[i] = min(STEPS) + max(STEPS) + sum(STEPS) + sum(STEPS, 10)",
        "out[i] = sum((i, 3)) + sum((x[i], i, 2.5))",
        "out[i] = sum((x[i], x[0], x[1]))",
        "out[i] = min(x) + max(x[: i + 1]) * 10",
        "out[i] = sum(n) + sum(n[i:], 5) + sum(x[:i], 0.5)",
        "out[i] = sum(range(i)) + sum(grid[i % 4])",
        "t = (n[i], n[0])\nout[i] = min(t) / 2",
        "out[i] = max((i,))",
        "nan = math.nan * x[1]\nout[i] = max((1.5, nan, 2.5)) + min((1.5, nan, 0.5))",
        "out[i] = max(range(3, i + 5)) + min(grid[i % 4, ::2])",
        "c = 0\nfor k in range(x[i] * 10):\n    c += 1\nout[i] = c",
        "for k in range(1.5, i / 4, 2.25):\n    out[i] += k",
    ],
)
def test_they_are_what_numba_computes(body):
    trace = labkit.simulate(kernel_of(body), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3], in_numba(body))
    assert trace.errors == ()


def test_each_thread_loads_the_array():
    trace = labkit.simulate(kernel_of("out[i] = sum(x)"), 1, N, *arguments())
    assert trace.counters.global_loads == N * N


def test_nothing_to_compare_ends_the_thread():
    trace = labkit.simulate(kernel_of("out[i] = min(n[i:5]) + 100"), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3][:6], [91, 92, 93, 94, 95, 0])
    assert [f.kind for f in trace.errors] == ["raised"] and trace.errors[0].count == N - 5


def test_a_range_of_a_float_is_advised_against():
    trace = labkit.simulate(kernel_of("for k in range(i / 2):\n    out[i] += 1"), 1, N, *arguments())
    (advice,) = [f for f in trace.advice if f.kind == "float-range"]
    assert "`i / 2`" in advice.message and "write `i // 2`" in advice.message and advice.line == 4


@pytest.mark.parametrize("body", ["out[i] = min(3)", "out[i] = max(())", "out[i] = sum(grid)", "out[i] = sum('ab')",
                                  "out[i] = min((1j, 2j))"])  # fmt: skip
def test_what_holds_no_numbers_is_refused(body):
    with pytest.raises(KernelError, match="takes a tuple|two or more|cannot compare"):
        labkit.simulate(kernel_of(body), 1, N, *arguments())
