"""Tuples and what is like them: their values, loops, comparisons, and arrays in them; named ones, Enums and ranges."""

from collections import namedtuple
from enum import Enum, IntEnum

import numpy as np
import pytest
from cells import kernel_in
from numba import types
from numba_oracle import variable_types

import labkit
from labkit import cuda
from labkit.simulator.arguments import typed_arguments
from labkit.simulator.errors import KernelError
from labkit.simulator.translate import translate

N = 32
I = np.arange(N)
FIRST, SECOND = np.arange(N) + 100.0, np.arange(N) + 200.0
Point = namedtuple("Point", "x y")
Colour = Enum("Colour", "RED GREEN")
Level = IntEnum("Level", "LOW HIGH")
NAMES = dict(
    STEPS=(1, 10, 100), NEST=((1, 2), 3), PAIRS=((1, 2), (3, 4)), MIXED=(1, 2.0),
    Point=Point, ORIGIN=Point(4, 7), Colour=Colour, Level=Level,
)  # fmt: skip


def kernel_of(body, start="i = cuda.grid(1)"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(f"@cuda.jit\ndef kernel(x, z, both, grid, out):\n{lines}", **NAMES)


def arguments():
    return FIRST.copy(), SECOND.copy(), (FIRST.copy(), SECOND.copy()), np.zeros((2, 3)), np.zeros(N)


def run(body):
    return labkit.simulate(kernel_of(body), 1, N, *arguments())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out[i] = STEPS[i % 3]", 10 ** (I % 3)),
        ("t = (i, i + 1)\nout[i] = t[-1 - i % 2]", I + 1 - I % 2),
        ("for axis in range(grid.ndim):\n    out[i] += grid.shape[axis] * 10**axis", np.full(N, 32)),
        ("out[i] = PAIRS[i % 2][1]", 2 + I % 2 * 2),
        ("out[i] = PAIRS[i % 2][i % 2]", np.where(I % 2, 4, 1)),
        ("out[i] = NEST[0][1]", np.full(N, 2)),
        ("out[i] = both[i % 2][i]", np.where(I % 2, SECOND, FIRST)),
        ("t = (x, z)\nout[i] = t[i % 2][i]", np.where(I % 2, SECOND, FIRST)),
        ("t = (x, z)\na = t[i // 16]\nout[i] = a[i] + a.size", np.where(I < 16, FIRST, SECOND) + N),
        ("for a in both:\n    out[i] += a[i]", FIRST + SECOND),
        ("for k, a in enumerate(both):\n    out[i] += a[i] * k", SECOND),
        ("t = (1, 2) + (i,)\nt += (5,)\nout[i] = t[2] + len(t)", I + 4),
        ("t = grid.shape + x.shape\nout[i] = t[2] * t[1]", np.full(N, 3 * N)),
        ("t = (1, 2.5, i)\na, b = t[1:]\nout[i] = t[::-1][0] + a", I + 2.5),
        ("out[i] = (1, i) == (1, 2)", I == 2),
        ("a, b = (x[i], 1) if i % 2 else (z[i], 2.5)\nout[i] = a * b", np.where(I % 2, FIRST, 2.5 * SECOND)),
        ("t = (x[i], 1) if i < 90 else (x[i + 90], 2)\nout[i] = t[0] + t[1]", FIRST + 1),
        ("out[i] = (i, (2, i)) != (3, (2.0, 3))", I != 3),
        ("out[i] = (x.shape == out.shape) + 2 * (x.shape == grid.shape)", np.full(N, 1)),
        ("out[i] = i in (1, 2, 5)", np.isin(I, (1, 2, 5))),
        ("if i not in STEPS:\n    out[i] = 1", ~np.isin(I, (1, 10, 100))),
        ("p = Point(i, 2.5)\nq = Point(y=p.x, x=p.y)\nout[i] = q.x + 10 * q.y", 2.5 + 10 * I),
        (
            "p = Point(x, 1)\nif i > 3:\n    p = Point(z, 2)\nout[i] = p.x[i] + p.y",
            np.where(I > 3, SECOND + 2, FIRST + 1),
        ),
        (
            "c = Colour.RED\nif i > 3:\n    c = Colour.GREEN\nout[i] = (c == Colour.GREEN) + (c is Colour.RED) * 5",
            np.where(I > 3, 1, 5),
        ),
        ("out[i] = Colour.GREEN.value + 10 * Level.HIGH.value + 100 * Level.LOW", np.full(N, 122)),
        ("r = range(i)\nfor k in r:\n    out[i] += k\nout[i] += 1000 * len(r)", I * (I - 1) // 2 + 1000 * I),
        ("out[i] = ORIGIN.x + 10 * ORIGIN[1] + 100 * len(ORIGIN)", np.full(N, 274)),
        ("out[i] = len(range(1, i, 2))", np.maximum(0, I // 2)),
        ("out[i] = (x is None) + 2 * (x is not None)", np.full(N, 2)),
    ],
)
def test_the_values_of_a_tuple(body, expected):
    trace = run(body)
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[4], expected)


def test_a_write_goes_to_the_array_that_each_thread_names():
    trace = run("both[i % 2][i] = 7")
    first, second = trace.outputs[2]
    np.testing.assert_array_equal(first, np.where(I % 2, FIRST, 7))
    np.testing.assert_array_equal(second, np.where(I % 2, 7, SECOND))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[i] = MIXED[i % 2]", "holds values of several types, so its index must be a plain number"),
        ("for v in MIXED:\n    out[i] = v", "holds values of several types, and a loop needs one type"),
        ("out[i] = STEPS[i]", "`STEPS` has 3 entries, and its index is 3 here; keep it below 3"),
        ("out[i] = STEPS[3]", "`STEPS` has 3 entries; there is no number 3"),
        ("STEPS[0] = 1", "`STEPS` is a tuple and cannot be changed"),
        ("v = cuda.int32x2(1, 2)\nout[i] = v[0]", "`v` is a vector, whose numbers are `v.x` and so on"),
        ("out[i] = STEPS[:i]", "a slice of a tuple needs plain numbers, such as `1:3`"),
        ("out[i] = (1, i) < (1, 2)", "`(1, i)` is a tuple of 2 values, but a comparison needs a number"),
        ("t = (i, 1) if i else (1, i, 2)", "a tuple of 2 values on one path and a tuple of 3 values on another"),
        ("t = (i, STEPS) if i else (1, STEPS)", "is a tuple of 3 values, but a choice needs a number"),
        ("out[i] = i in x", "`in` looks through a tuple in a kernel, not through an array of float64; write a loop"),
        ("out[i] = i in MIXED", "`MIXED` holds values of several types, and `in` needs one type"),
        ("out[i] = i is i", "`is` asks for None and for members of an Enum in a kernel; compare numbers with `==`"),
        ("p = Point(1)", "`Point` takes a value each for x, y"),
        ("p = Point(1, z=2)", "`Point` takes a value each for x, y"),
        ("out[i] = Colour.RED + 1", "`+` needs numbers, and one side is a member of Colour"),
        ("out[i] = Colour.RED == Level.LOW", "a member of Colour"),
        ("r = range(i)\nout[i] = r[0]", "`r` is a range and takes no index in a kernel"),
        ("t = STEPS\n" + "t = t + t\n" * 12, "a tuple of more than 1,000 values is too long"),
    ],
)
def test_what_a_tuple_cannot_do_is_said(body, reason):
    with pytest.raises(KernelError) as refused:
        run(body)
    assert reason in str(refused.value)


def test_an_index_that_is_loaded_is_loaded_once():
    for body in ("out[i] = both[int(x[i]) % 2][i]", "out[i] = STEPS[int(x[i]) % 3]"):
        loads = [s for s in run(body).sites if s.site.text == "x[i]"]
        assert [s.accesses for s in loads] == [N]


@pytest.mark.needs("numba-cuda")
def test_values_of_a_tuple_have_numbas_types():
    body = "k = grid.size % 2\na = STEPS[k]\nb = grid.shape[k]\nc = both[k][k]\nd = PAIRS[k][0]\nout[k] = a + b + c + d"
    kernel = kernel_of(body, start="pass")
    array = types.Array(types.float64, 1, "C")
    kinds = array, array, types.UniTuple(array, 2), types.Array(types.float64, 2, "C"), array
    ours, _ = typed_arguments(("x", "z", "both", "grid", "out"), arguments())
    found, theirs = translate(kernel.py_func, ours).variables, variable_types(kernel.py_func, kinds)
    assert {n: found[n] for n in "abcd"} == {n: theirs[n] for n in "abcd"}


@cuda.jit(device=True)
def counted(x, i):
    cuda.atomic.add(x, i, 1)
    return i, x[i], 2 * i


@cuda.jit
def takes_three(x, out):
    i = cuda.grid(1)
    a, b, c = counted(x, i)
    out[i] = a + b + c


def test_a_device_function_runs_once_however_many_values_it_gives():
    trace = labkit.simulate(takes_three, 1, N, np.zeros(N), np.zeros(N))
    assert (trace.outputs[0] == 1).all() and (trace.outputs[1] == 3 * I + 1).all()
    assert trace.counters.global_loads == trace.counters.global_atomics == N


def test_arrays_that_are_made_in_one_line_keep_their_names():
    trace = run(
        "re, im = cuda.shared.array(32, np.float64), cuda.shared.array(32, np.float64)\n"
        "re[i], im[i] = x[i], z[i]\n"
        "cuda.syncthreads()\n"
        "out[i] = re[i] + im[i + 1]"
    )
    assert {counted.site.array for counted in trace.sites} == {"x", "z", "out", "re", "im"}
    assert ["im[32], but im has 32 elements" in finding.message for finding in trace.errors] == [True]
