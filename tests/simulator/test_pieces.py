"""The bits of arrays and numbers as another type: `x.view(dtype)`, `z.real`, `z.imag`; compared with numba's njit."""

import numpy as np
import pytest
from cells import kernel_in
from numba import njit

import labkit
from labkit.simulator.errors import KernelError

N = 32
I = np.arange(N)


def arguments():
    x = np.sin(np.arange(2.0 * N))
    return x, x.astype(np.float32).reshape(4, 16), (x[:N] + 1j * x[N:]).astype(np.complex64), np.zeros(N)


def kernel_of(body, head="@cuda.jit", start="i = cuda.grid(1)", parameters="x, grid, z, out"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(f"{head}\ndef kernel({parameters}):\n{lines}", njit=njit)


def run(body, threads=N):
    return labkit.simulate(kernel_of(body), 1, threads, *arguments())


def in_numba(body):
    arrays = arguments()
    compiled = kernel_of(body, "@njit", "pass", "x, grid, z, out, i")
    for i in range(N):
        compiled(*arrays, i)
    return arrays


@pytest.mark.parametrize(
    "body",
    [
        "v = x.view(np.int64)\nout[i] = v[i] + v.size",
        "v = x.view(np.int32)\nout[i] = v[2 * i + 1] + v.shape[0]",
        "v = x.view(np.uint8)\nout[i] = v[i] + v.size",
        "v = grid.view(np.float64)\nout[i] = v[i // 8, i % 8] + v.shape[1]",
        "v = grid[i % 4, 4:8].view(np.int64)\nout[i] = v[i % 2] + v.size",
        "v = x.view(np.int64)\nv[i] += 1\nout[i] = x[i]",
        "v = x.view(np.float32).view(np.uint64)\nout[i] = v[i + 3] >> 3",
        "out[i] = z.real[i] + 10 * z.imag[i]",
        "z.real[i] = i\nz.imag[i] = z.real[i] * 2\nout[i] = z[i].imag + z[i].real",
        "part = z[4:].imag[::2]\nout[i] = part[i % 14] + part.size",
        "v = z.view(np.float32)\nout[i] = v[2 * i] - z.imag[i]",
        "out[i] = x.real[i]",
        "out[i] = np.float64(x[i]).view(np.int64) + np.float32(grid[0, 3]).view(np.uint32)",
        "k = np.float32(grid[0, 1]).view(np.int32) + 1\nout[i] = np.int64(k).view(np.float64)",
    ],
)
def test_they_are_what_numba_reads_and_writes(body):
    trace = run(body)
    for ours, theirs in zip(trace.outputs, in_numba(body)):
        np.testing.assert_array_equal(ours, theirs)
    assert trace.errors == ()


def test_atomics_add_to_the_parts_of_complex_numbers():
    trace = run("cuda.atomic.add(z.real, i // 8, 1)\ncuda.atomic.add(z.imag, 0, i)")
    before = arguments()[2]
    added = trace.outputs[2] - before
    np.testing.assert_allclose(added.real[:4], 8, rtol=1e-6)
    np.testing.assert_allclose(added[0].imag, I.sum(), rtol=1e-6)
    assert trace.errors == () and trace.counters.global_atomics == 2 * N


def test_shared_and_local_arrays_are_taken_apart_too():
    body = """s = cuda.shared.array(32, np.complex64)
own = cuda.local.array(2, np.complex64)
s.real[i] = i
s.imag[i] = 1
own[1] = 2j
own.real[1] = 7
v = own.imag
cuda.syncthreads()
out[i] = s[31 - i].real + v[1] + own[1].real + s.view(np.float32)[2 * i + 1]"""
    trace = run(body)
    np.testing.assert_array_equal(trace.outputs[3], 31 - I + 2 + 7 + 1)
    assert trace.errors == ()


def test_sectors_are_those_of_the_real_memory():
    trace = run("out[i] = z.real[i]")
    (load,) = [s for s in trace.sites if s.site.kind == "load"]
    assert load.sectors == 8  # 32 numbers, 8 bytes apart


@pytest.mark.parametrize(
    ("body", "races"),
    [
        ("v = x.view(np.int32)\nif i < 16:\n    x[i] = 1\nelse:\n    v[2 * (i - 16) + 1] = 5", True),
        ("v = x.view(np.int32)\nif i < 16:\n    x[i] = 1\nelse:\n    v[2 * i + 1] = 5", False),
        ("if i < 16:\n    z.real[i] = 1\nelse:\n    z.imag[i - 16] = 5", False),
        ("if i < 16:\n    z.real[i] = i\nelse:\n    z[i - 16] = 5", True),
        ("v = grid.view(np.float64)\nif i < 16:\n    grid[0, i] = i\nelse:\n    v[0, i % 8] = 5", True),
        (
            "s = cuda.shared.array(32, np.complex64)\nif i < 16:\n    s.real[i] = 1\nelse:\n    s.imag[i - 16] = 5",
            False,
        ),
        ("s = cuda.shared.array(32, np.complex64)\nif i < 16:\n    s[i] = i\nelse:\n    s.imag[i - 16] = 5", True),
    ],
)
def test_races_are_those_of_the_bytes(body, races):
    found = [f for f in run(body).errors if f.kind == "race"]
    assert bool(found) == races
    if races:
        assert found[0].array in ("x", "z", "grid", "s") and found[0].index is not None


def test_a_half_written_element_is_uninitialised():
    body = "s = cuda.shared.array(32, np.complex64)\ns.real[i] = 1\ncuda.syncthreads()\nout[i] = s{}[31 - i]{}"
    assert run(body.format(".real", "")).errors == ()
    assert [f.kind for f in run(body.format("", ".imag")).errors] == ["uninitialised"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("v = x[::2].view(np.int32)\nout[i] = v[i]", "without gaps"),
        ("v = grid[0, :3].view(np.float64)\nout[i] = v[0]", "holds no whole number"),
        ("v = grid[0, 1:3].view(np.float64)\nout[i] = v[0]", "begins between two elements"),
        ("out[i] = x[i].view(np.int32)", "a number as another type of its size"),
        ("out[i] = x.imag[i]", "its `.imag` is 0"),
        ("own = cuda.local.array(2, np.float64)\nv = own.view(np.int32)\nout[i] = v[0]", "one other type of its size"),
        ("v = x.view(3)\nout[i] = v[0]", "not a dtype"),
    ],
)
def test_what_no_gpu_reads_is_refused(body, message):
    with pytest.raises(KernelError, match=message):
        run(body)
