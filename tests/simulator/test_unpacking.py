"""Unpacking of arrays, their rows and slices, and of ranges, as numba's njit unpacks them."""

import numpy as np
import pytest
from cells import kernel_in
from numba import njit

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError

N = 32
I = np.arange(N)


def arguments():
    image = np.arange(N * 6.0).reshape(N, 2, 3)
    return image, np.arange(N * 3).reshape(N, 3), np.arange(N * 2) + 100.0, np.zeros(N)


def kernel_of(body, head="@cuda.jit", start="i = cuda.grid(1)", parameters="image, grid, x, out"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(f"{head}\ndef kernel({parameters}):\n{lines}", njit=njit)


def in_numba(body):
    arrays = arguments()
    compiled = kernel_of(body, "@njit", "pass", "image, grid, x, out, i")
    for i in range(N):
        compiled(*arrays, i)
    return arrays[3]


@pytest.mark.parametrize(
    "body",
    [
        "r, g, b = image[i, 1]\nout[i] = r + g * b",
        "(a, b, c), (d, e, f) = image[i]\nout[i] = a + b * c + d * e - f",
        "a, b = grid[i, :2]\nout[i] = a * 1000 + b",
        "a, b = grid[i, ::-2]\nout[i] = a * 1000 + b",
        "a, b = x[2 * i : 2 * i + 2]\nout[i] = a - b",
        "[a, b] = x[2 * i : 2 * i + 2]\nout[i] = a - b",
        "(a, b, c), d = grid[i], 2\nout[i] = a + b * c + d",
        "first, second = image[i]\nout[i] = first[2] + second.shape[0]",
        "for a, b, c in grid[:4]:\n    out[i] += a + b * c",
        "for k, (a, b, c) in enumerate(grid[:4]):\n    out[i] += k * a + b * c",
        "out[i], x[i], c = grid[i]\nout[i] += c",
        "a, b, c = range(i, 3 * i + 3, i + 1)\nout[i] = a + 100 * b + 10000 * c",
        "a, b = x[:2]\nb, a = a, b\nout[i] = a",
    ],
)
def test_arrays_and_ranges_unpack_as_in_numba(body):
    trace = labkit.simulate(kernel_of(body), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3], in_numba(body))
    assert trace.errors == ()


def test_a_threads_own_array_unpacks():
    trace = labkit.simulate(
        kernel_of("t = cuda.local.array(2, float32)\nt[0] = i\nt[1] = 2\na, b = t\nout[i] = a * b"), 1, N, *arguments()
    )
    np.testing.assert_array_equal(trace.outputs[3], 2 * I)


def test_each_value_is_one_load():
    trace = labkit.simulate(kernel_of("a, b = x[2 * i : 2 * i + 2]\nout[i] = a + b"), 1, N, *arguments())
    assert trace.counters.global_loads == 2 * N
    (load,) = [s for s in trace.sites if s.site.kind == "load"]
    assert (load.site.array, load.site.line) == ("x", 4)


def test_a_thread_with_another_number_of_values_raises_as_in_numba():
    body = "a, b = x[i % 8 : 8]\nout[i] = a + b + 1"
    trace = labkit.simulate(kernel_of(body), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3] != 0, I % 8 == 6)
    (finding,) = trace.errors
    assert (finding.kind, finding.count, finding.line) == ("raised", N * 7 // 8, 4)
    assert "ValueError: 2 names take the values of `x[i % 8:8]`, which has others" in finding.message
    with pytest.raises(ValueError):
        kernel_of(body, "@njit", "pass", "image, grid, x, out, i")(*arguments(), 0)
    kernel_of(body, "@njit", "pass", "image, grid, x, out, i")(*arguments(), 6)


def test_a_loop_ends_for_the_threads_that_cannot_unpack():
    body = "n = 0\nfor a, b in image[i, :, : 2 + i % 2]:\n    n += 1\nout[i] = n"
    trace = labkit.simulate(kernel_of(body), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3], np.where(I % 2, 0, 2))


def test_a_device_function_unpacks_its_argument():
    @cuda.jit(device=True)
    def luminance(pixel):
        r, g, b = pixel
        return r + 2 * g + 3 * b

    @cuda.jit
    def kernel(image, out):
        i = cuda.grid(1)
        out[i] = luminance(image[i, 0])

    image = arguments()[0]
    trace = labkit.simulate(kernel, 1, N, image, np.zeros(N))
    np.testing.assert_array_equal(trace.outputs[1], image[:, 0] @ [1, 2, 3])


@pytest.mark.parametrize(
    "body",
    [
        "grid[i, :] = (i, 2 * i, 3 * i)\nout[i] = grid[i, 1] + grid[i, 2]",
        "image[i, 1, ::2] = (0.5, 1.5)\na, b, c = image[i, 1]\nout[i] = a * b + c",
        "x[2 * i : 2 * i + 2] = x[2 * i + 1], x[2 * i]\nout[i] = x[2 * i]",
    ],
)
def test_a_tuple_fills_a_slice_as_in_numba(body):
    trace = labkit.simulate(kernel_of(body), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3], in_numba(body))
    assert trace.errors == ()


def test_a_tuple_of_another_length_than_the_slice_raises():
    trace = labkit.simulate(kernel_of("x[i : 33] = (1, 2)\nout[i] = 1"), 1, N, *arguments())
    np.testing.assert_array_equal(trace.outputs[3] != 0, I == 31)
    assert "ValueError: `x[i:33]` has another number of elements than `(1, 2)`" in trace.errors[0].message


@pytest.mark.parametrize("body", ["grid[i, :] = (i, 2.5, 3)", "image[i, :] = (1.0, 2.0)"])
def test_other_tuples_do_not_fill_a_slice(body):
    with pytest.raises(KernelError, match="write an assignment for each element"):
        labkit.simulate(kernel_of(body), 1, N, *arguments())
