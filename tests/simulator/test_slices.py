"""Slices, rows and choices of arrays do what they do in Python, and count as accesses of the array they are part of."""

from itertools import product

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError
from labkit.simulator.slices import Slice, _resolve_slice

THREADS = 32


def by_thread(text, *arrays):
    """Return the results of the body when each thread runs it as plain Python, one after another, on copies."""
    copies = [a.copy() for a in arrays]
    names = "xyz"[: len(arrays)]
    scope = {"np": np}
    exec(f"def thread(i, {', '.join(names)}):\n" + "\n".join("    " + line for line in text.splitlines()), scope)
    for i in range(THREADS):
        scope["thread"](i, *copies)
    return copies


def by_simulator(text, *arrays):
    names = "xyz"[: len(arrays)]
    body = "\n".join("    " + line for line in ["i = cuda.grid(1)", *text.splitlines()])
    trace = labkit.simulate(kernel_in(f"@cuda.jit\ndef kernel({', '.join(names)}):\n{body}"), 1, THREADS, *arrays)
    assert trace.errors == ()
    return trace


BODIES = {
    "a row": "y[i, 0] = x[i][2]",
    "a row by name": "row = x[i]\nfor j in range(row.shape[0]):\n    y[i, j] = row[j]",
    "a column": "column = x[:, 1]\ny[i, 0] = column[i]",
    "a slice from each thread's place": "rest = x[i:]\ny[i, 0] = rest[0, 1]\ny[i, 1] = rest.shape[0]",
    "transposed": "y[i, 0] = x.T[1, i]\ny.T[1, i] = x[i:].T[2][0]",
    "another shape": "y[i, 1] = x.reshape(x.shape[1], x.shape[0])[2, i]",
    "another shape of a part": "y[i, 0] = x[i:].reshape(-1)[1] + x[2:6].reshape((2, -1))[1, 0]",
    "a write in another shape": "y.reshape(-1)[2 * i + 1] = x[i, 1]",
    "another shape on one path": "if i > 3:\n    y[i, 0] = x[: i - 3].reshape((i - 3) * 3, 1)[0, 0]",
    "steps": "y[i, 0] = x[i, ::2][1]\ny[i, 1] = x[i, ::-1][0]",
    "negative bounds": "y[i, 0] = x[i, -2:][0]\ny[i, 1] = x[-1 - i, :-1].shape[0]",
    "a slice of a slice": "y[i, 0] = x[i:][0:1][0][1]",
    "an ellipsis": "y[i, 0] = x[..., 2][i]\ny[i, 1] = x[i, ...][0]",
    "a number over a slice": "y[i, 1:] = 7",
    "through a slice": "part = y[i, 1:]\npart[0] = x[i, 0]\npart[1] = 2 * part[0]",
    "updates": "y[i, 1:][0] += x[i, 2]",
    "a tuple as an index": "at = (i, 2)\ny[at] = x[at]",
}


@pytest.mark.parametrize("what", BODIES)
def test_parts_of_arrays_are_pythons(what):
    x = np.random.default_rng(1).standard_normal((THREADS, 3))
    y = np.zeros((THREADS, 3))
    expected = by_thread(BODIES[what], x, y)
    outputs = by_simulator(BODIES[what], x, y).outputs
    np.testing.assert_array_equal(outputs[0], expected[0])
    np.testing.assert_array_equal(outputs[1], expected[1])


def test_slices_are_resolved_as_python_does():
    bounds = [None, *range(-8, 9)]
    given = lambda n: None if n is None else np.int64(n)  # noqa: E731
    for size, start, stop, step in product(range(6), bounds, bounds, (None, 1, 2, -1, -3)):
        first, stride, length = _resolve_slice(Slice(given(start), given(stop), given(step)), size)
        expected = range(*slice(start, stop, step).indices(size))
        assert length == len(expected)
        assert not expected or (first, stride) == (expected[0], expected.step)


def test_a_choice_of_arrays_counts_for_the_one_it_is():
    body = "if i % 2:\n    s = x\nelse:\n    s = y\nz[i] = s[i]\ns[i] = 7.0"
    x, y, z = np.arange(32.0), np.arange(32.0) + 100, np.zeros(32)
    trace = by_simulator(body, x, y, z)
    for output, expected in zip(trace.outputs, by_thread(body, x, y, z)):
        np.testing.assert_array_equal(output, expected)
    counted = {(c.site.array, c.site.kind): c.accesses for c in trace.sites if c.site.text == "s[i]"}
    assert counted == {(a, k): 16 for a in "xy" for k in ("load", "store")}


def test_two_arrays_that_alternate():
    turn = "if step % 2 == 0:\n    s = x\n    d = y\nelse:\n    s = y\n    d = x\nd[i] = s[i] + 1.0"
    body = "for step in range(3):\n    " + turn.replace("\n", "\n    ")
    x, y = np.arange(32.0), np.zeros(32)
    outputs = by_simulator(body, x, y).outputs
    np.testing.assert_array_equal(outputs[1], x + 3)


def test_what_lies_outside_a_slice_is_found_though_the_array_has_it():
    kernel = kernel_in("@cuda.jit\ndef kernel(x):\n    part = x[2:6]\n    x[0] = part[cuda.threadIdx.x]")
    (finding,) = [f for f in labkit.simulate(kernel, 1, 5, np.zeros(16)).errors if f.kind == "bounds"]
    assert "element [4] of a slice of x" in finding.message and "part has 4 elements" in finding.message
    assert finding.threads[0].thread == (4, 0, 0)


def test_a_row_outside_its_array_has_nothing_to_read():
    kernel = kernel_in("@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n    y[i] = x[i + 1][0]")
    found = labkit.simulate(kernel, 1, 4, np.ones((4, 2)), np.zeros(4)).errors
    assert [f.kind for f in found] == ["bounds"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("x[::2].reshape(2, 8)", "elements lie one after another in C order"),
        ("x.reshape(4, 8).T.reshape(32)", "elements lie one after another in C order"),
        ("x.reshape(5, 7)", "x has 32 elements, and the shape that it is to take has others"),
        ("x.reshape(2.0, 16)", "must be whole numbers"),
        ("x.reshape()", "makes a shape of an array"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(body, reason):
    with pytest.raises(KernelError, match=reason):
        by_simulator(f"z = {body}", np.zeros(32))


def test_shared_and_local_arrays_have_parts_too():
    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(out):
            t = cuda.threadIdx.x
            s = cuda.shared.array((4, 8), float32)
            own = cuda.local.array(4, float32)
            row = s[t // 8]
            row[t % 8] = t
            tail = own[1:]
            tail[2] = 3 * t
            cuda.syncthreads()
            out[t] = s[3 - t // 8, ::-1][t % 8] + own[3]
        """
    )
    trace = labkit.simulate(kernel, 1, 32, np.zeros(32, np.float32))
    assert trace.errors == ()
    t = np.arange(32)
    np.testing.assert_array_equal(trace.outputs[0], 8 * (3 - t // 8) + 7 - t % 8 + 3 * t)


@pytest.mark.parametrize("copy", ["x[1:3] = y[1:3]", "x[0] = y[1]", "x[:] = y"])
def test_parts_of_arrays_are_not_copied_as_numba_compiles_no_such_copy(copy):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x, y):\n    {copy}")
    with pytest.raises(KernelError, match="write a loop over the elements"):
        labkit.simulate(kernel, 1, 1, np.zeros((4, 4)), np.zeros((4, 4)))


def test_a_name_may_hold_an_array_in_some_lanes_and_a_number_in_others():
    body = "a = y[i]\nif i % 2:\n    a = x\n    a = a[i] + 1.0\nz[i] = a"
    x, y, z = np.arange(32.0), np.arange(32.0) + 100, np.zeros(32)
    np.testing.assert_array_equal(by_simulator(body, x, y, z).outputs[2], by_thread(body, x, y, z)[2])


@cuda.jit
def unsigned_places(X, out):
    t = np.uint32(cuda.threadIdx.x)
    i = t // np.uint32(4)  # a uint64
    row, rest = X[i, i], X[i // np.uint32(2), i:]
    out[t] = row[t % np.uint32(4)] - rest[0, t % np.uint32(4)]


def test_a_view_takes_indices_without_signs():
    X = np.random.default_rng(0).standard_normal((8, 8, 4)).astype(np.float32)
    out = labkit.simulate(unsigned_places, 1, 32, X, np.zeros(32, np.float32)).outputs[1]
    i, j = np.arange(32) // 4, np.arange(32) % 4
    np.testing.assert_array_equal(out, X[i, i, j] - X[i // 2, i, j])
