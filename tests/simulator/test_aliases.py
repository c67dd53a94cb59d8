"""Variables of a kernel that stand for parts of modules: `a = cuda.atomic`, `b, t = cuda.blockIdx, cuda.threadIdx`."""

from types import ModuleType

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import cuda
from labkit.simulator.reading.source import read_source
from labkit.simulator.run import translated

N = 64
I = np.arange(N)


def kernel_of(body, **names):
    lines = "".join(f"    {line}\n" for line in ["i = cuda.grid(1)", *body.split("\n")])
    return kernel_in(f"@cuda.jit\ndef kernel(x, out):\n{lines}", **names)


def run(body, **names):
    return labkit.simulate(kernel_of(body, **names), 2, N // 2, np.zeros(N, np.int32), np.zeros(N))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = cuda.threadIdx\nout[i] = t.x", I % 32),
        ("b, t = cuda.blockIdx, cuda.threadIdx\nout[i] = b.x * 100 + t.x", I // 32 * 100 + I % 32),
        ("(b, t), n = (cuda.blockIdx, cuda.threadIdx), 7\nout[i] = b.x * 100 + t.x + n", I // 32 * 100 + I % 32 + 7),
        ("a = cuda.atomic\na.add(out, i // 2, i)", np.where(I < 32, 4 * I + 1, 0)),
        ("c = cuda\na = c.atomic\na.max(out, c.threadIdx.x, i)", np.where(I < 32, I + 32, 0)),
        ("s = cuda.shared\nown = s.array(32, float32)\nown[i % 32] = i\nout[i] = own[i % 32]", I),
        ("m = math\nsqrt = m.sqrt\nout[i] = sqrt(i * i) + m.floor(0.5)", I),
        ("kind, n = np.int8, 300\nout[i] = kind(n)", np.full(N, 44)),
        ("d = cuda.threadIdx\nif i >= 32:\n    d = cuda.blockIdx\nout[i] = d.x", None),
        ("x_of = cuda.threadIdx.x\nlane = cuda.laneid\nout[i] = x_of - lane", np.zeros(N)),
        ("sync = cuda.syncthreads\nsync()\nout[i] = 1", np.ones(N)),
    ],
)
def test_a_variable_stands_for_a_part_of_a_module(body, expected):
    if expected is None:
        with pytest.raises(labkit.simulator.errors.KernelError, match="make them the same"):
            run(body)
        return
    trace = run(body)
    np.testing.assert_array_equal(trace.outputs[1], expected)
    assert trace.errors == ()


def test_a_lock_by_another_name_is_still_a_spin():
    body = "a = cuda.atomic\nwhile a.cas(x, 0, 0, 1) != 0:\n    pass\nout[0] += 1\ncuda.threadfence()\na.exch(x, 0, 0)"
    plain = body.replace("a = cuda.atomic\n", "").replace("a.cas", "cuda.atomic.cas").replace("a.ex", "cuda.atomic.ex")
    first, second = (translated(kernel_of(b), np.zeros(N, np.int32), np.zeros(N)) for b in (body, plain))
    assert first.spins and second.spins and first.waits_for_all


def test_the_text_stays_as_written():
    kernel = kernel_of("a = cuda.atomic\na.add(x, i, 1)")
    trace = labkit.simulate(kernel, 2, N // 2, np.zeros(N, np.int32), np.zeros(N))
    assert "a.add" in read_source(kernel.py_func).text
    (site,) = [s.site for s in trace.sites if s.site.kind == "atomic"]
    assert site.array == "x" and site.line == 5


def test_a_barrier_by_another_name_of_a_users_module_waits():
    helpers = ModuleType("helpers")
    helpers.meet = cuda.syncthreads
    first, second = "if i < 32:\n    s[i] = i", "if i >= 32:\n    out[i] = s[i - 32]"
    body = f"s = cuda.shared.array(64, float64)\n{first}\nhelpers.meet()\n{second}"
    trace = labkit.simulate(kernel_of(body, helpers=helpers), 1, N, np.zeros(N, np.int32), np.zeros(N))
    np.testing.assert_array_equal(trace.outputs[1], np.where(I >= 32, I - 32, 0))
    assert trace.errors == ()
