"""Functions and lambdas inside kernels, which numba compiles into each call; compared with its njit."""

import numpy as np
import pytest
from cells import kernel_in
from numba import njit

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError

N = 64
I = np.arange(N)


@cuda.jit(device=True)
def apply(function, a):
    return function(a) + 1


def arguments():
    return np.sin(I), np.zeros(N)


def kernel_of(body, head="@cuda.jit", start="i = cuda.grid(1)", parameters="x, out"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(f"{head}\ndef kernel({parameters}):\n{lines}", njit=njit, apply=apply, SCALE=3)


def run(body, blocks=2):
    return labkit.simulate(kernel_of(body), blocks, N // blocks, *arguments())


def in_numba(body):
    arrays = arguments()
    compiled = kernel_of(body, "@njit", "pass", "x, out, i")
    for i in range(N):
        compiled(*arrays, i)
    return arrays[1]


@pytest.mark.parametrize(
    "body",
    [
        "def f(a):\n    return a * 2\nout[i] = f(x[i])",
        "f = lambda a: a * SCALE + i\nout[i] = f(x[i]) + f(2)",
        "k = 3\ndef f(a):\n    return a * k\nout[i] = f(i)",
        "k = 1\ndef f(a):\n    return a * k\nk = 2.5\nout[i] = f(i)",
        "k = i + 1\ndef f(a, b=2):\n    if a > 9:\n        return a * k\n    return b\nout[i] = f(i) + f(i, 5) * 1000",
        "def f(a, b=SCALE):\n    return a - b\nout[i] = f(i)",
        "def put(v):\n    out[i] = v\nput(3)\nput(i)",
        "out[i] = (lambda a: a + 1)(i)",
        "k = 2\ng = lambda a: a + k\ndef f(a):\n    return g(a) * 10\nout[i] = f(i)",
        "t = 5\ndef f(a):\n    t = a * a\n    return t\nout[i] = f(i) + t",
        "def f(a):\n    n = 0\n    while a > 1:\n        if a % 7 == 0:\n            break\n        a //= 2\n        "
        "n += 1\n"
        "    return n\nout[i] = f(i)",
        "def f(a, v):\n    return v[a % v.size] + x[i]\nout[i] = f(i, x[3:9])",
        "for k in range(3):\n    def f(a):\n        return a + k\n    out[i] += f(i)",
        "def f(a):\n    return a, a + 1\np, q = f(i)\nout[i] = p * q",
        "if i > 7:\n    f = lambda a: a + 2\n    out[i] = f(i)",
        "f = lambda a: a\nf2 = lambda a: f(a) * f(a)\nout[i] = f2(i)",
    ],
)
def test_they_compute_what_numba_computes(body):
    trace = run(body)
    np.testing.assert_array_equal(trace.outputs[1], in_numba(body))
    assert trace.errors == ()


def test_their_accesses_are_counted_at_their_own_line():
    trace = run("def f(a):\n    return x[a] * 2.0\nout[i] = f(i) + f(63 - i)")
    assert trace.counters.global_loads == 2 * N and trace.counters.flops == 3 * N
    (load,) = [s.site for s in trace.sites if s.site.kind == "load"]
    assert (load.line, load.array) == (5, "x")


def test_a_barrier_inside_one_is_a_barrier_of_the_kernel():
    meet = "def meet():\n    cuda.syncthreads()\ns = cuda.shared.array(64, float64)\ns[i] = x[i]\n{}out[i] = s[63 - i]"
    assert run(meet.format("meet()\n"), 1).errors == ()
    assert {f.kind for f in run(meet.format(""), 1).errors} == {"race"}
    divided = run(meet.format("if i < 40:\n    meet()\n"), 1)
    assert "barrier" in {f.kind for f in divided.errors}


def test_atomics_and_races_inside_one_are_found():
    assert run("add = lambda v: cuda.atomic.add(out, 0, v)\nadd(1)").outputs[1][0] == N
    trace = run("def put(v):\n    out[0] = v\nput(i)")
    assert [f.kind for f in trace.errors] == ["race"] and trace.errors[0].line == 5


def test_a_function_without_variables_is_handed_on():
    np.testing.assert_array_equal(run("f = lambda a: a * a\nout[i] = apply(f, i)").outputs[1], I * I + 1)
    np.testing.assert_array_equal(run("out[i] = apply(lambda a: a * a, i)").outputs[1], I * I + 1)


def test_one_inside_a_device_function_takes_its_variables():
    @cuda.jit(device=True)
    def outer(a, scale):
        def inner(b):
            return b * scale + a

        return inner(a) + inner(1)

    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i] = outer(i, 10)

    np.testing.assert_array_equal(labkit.simulate(kernel, 2, 32, np.zeros(N)).outputs[0], 12 * I + 10)


def test_a_kernel_of_a_factory_reads_its_closure_in_one():
    def make(scale):
        @cuda.jit
        def kernel(out):
            i = cuda.grid(1)

            def f(a):
                return a * scale + i

            out[i] = f(i)

        return kernel

    for scale in (2, 7):
        np.testing.assert_array_equal(labkit.simulate(make(scale), 2, 32, np.zeros(N)).outputs[0], I * (scale + 1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def f(a):\n    return a if a < 2 else f(a - 1)\nout[i] = f(i)", "calls itself"),
        ("def f(a, *b):\n    return a\nout[i] = f(i)", "plain positional"),
        ("def f(a):\n    return a\nout[i] = f(a=i)", "by position"),
        ("def f(a, b=x):\n    return a\nout[i] = f(i)", "a plain number"),
        ("k = 1\ndef f(a):\n    nonlocal k\n    k = a\nf(i)", "cannot change an outer variable"),
        ("if i:\n    f = lambda a: a\nelse:\n    f = lambda a: 2\nout[i] = f(i)", "define each function once"),
        (
            "if i:\n    def f(a):\n        return a\nelse:\n    def f(a):\n        return 2\nout[i] = f(i)",
            "function once",
        ),
        ("k = 2\nout[i] = apply(lambda a: a * k, i)", "cannot be handed on; give it `k`"),
        ("@njit\ndef f(a):\n    return a\nout[i] = f(i)", "no decorator"),
        ("def f():\n    return cuda.shared.array(4, float32)\nout[i] = f()[0]", "in the kernel itself"),
        ("f = lambda a: missing\nout[i] = f(i)", "`missing` is not defined"),
        ("out[i] = f(i)\nf = lambda a: k\nk = 3", "first value is in line 6; define this lambda below"),
    ],
)
def test_others_are_refused(body, message):
    with pytest.raises(KernelError, match=message):
        run(body)


@pytest.mark.parametrize(
    "body",
    [
        "f = lambda a: a * late\nlate = x[i]\nout[i] = f(2)",
        "def f(a):\n    return a * late\nlate = x[i]\nout[i] = f(2)",
    ],
)
def test_a_variable_has_a_value_before_an_inner_function_reads_it(body):
    with pytest.raises(NotImplementedError, match="cell variable"):
        in_numba(body)
    what = "`f`" if "def" in body else "this lambda"
    with pytest.raises(KernelError, match=f"{what} reads `late`, .*; define {what} below that line"):
        run(body)


def test_a_variable_may_have_further_values_below():
    body = "late = x[i]\nf = lambda a: a * late\nlate += 1\nout[i] = f(2)"
    assert np.array_equal(run(body).outputs[1], in_numba(body))
