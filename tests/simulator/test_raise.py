"""`raise` and `assert` in kernels: the thread ends, a finding says what it raised, `debug=True` raises on the host."""

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import cuda
from labkit.cuda.simulated import FindingWarning
from labkit.simulator.errors import KernelError

N = 64
I = np.arange(N)


class Unfit(ValueError):
    pass


@cuda.jit(device=True)
def positive(a):
    if a < 0:
        raise ValueError("negative")
    return a + 1


@cuda.jit(device=True)
def twice_positive(a):
    return positive(a) * 2


@cuda.jit(device=True)
def never(a):
    raise NotImplementedError


NAMES = dict(positive=positive, twice_positive=twice_positive, never=never, Unfit=Unfit, LIMIT=3)


def kernel_of(body, **names):
    lines = "".join(f"    {line}\n" for line in ["i = cuda.grid(1)", *body.split("\n")])
    return kernel_in(f"@cuda.jit\ndef kernel(x, out):\n{lines}", **NAMES, **names)


def run(body, blocks=2):
    return labkit.simulate(kernel_of(body), blocks, N // blocks, I - 5.0, np.full(N, 100.0))


@pytest.mark.parametrize(
    ("body", "ended", "expected"),
    [
        ("if i == 3:\n    raise ValueError('bad')\nout[i] = i", I == 3, I),
        ("assert i > 3, 'small'\nout[i] = i", I <= 3, I),
        ("assert i != LIMIT\nout[i] = i", I == 3, I),
        ("assert LIMIT == 3\nout[i] = i", I < 0, I),
        ("if i % 2:\n    if i > 40:\n        raise Unfit\n    out[i] = 1\nelse:\n    out[i] = 2", (I % 2) & (I > 40),
         2 - I % 2),
        ("n = 0\nfor k in range(i):\n    if k == 50:\n        raise ValueError\n    n += 1\nout[i] = n", I > 50, I),
        ("n = 0\nwhile n < i:\n    assert n < 50\n    n += 1\nout[i] = n", I > 50, I),
        ("out[i] = positive(x[i])", I < 5, I - 4),
        ("y = i * 2\nout[i] = twice_positive(x[i]) + y", I < 5, 4 * I - 8),
        ("y = positive(x[i]) if i % 2 else 7\nout[i] = y", (I < 5) & (I % 2 == 1), np.where(I % 2, I - 4, 7)),
        ("if i > 2 and positive(x[i]) > 8:\n    out[i] = 1", (I > 2) & (I < 5), np.where(I > 12, 1, 100)),
        ("n = 0\nwhile positive(x[i] - n) > 30:\n    n += 1\nout[i] = n", I < 5, np.maximum(I - 34, 0)),
        ("n = 0\nwhile positive(x[i] - n) > 0:\n    n += 1\nout[i] = n", I >= 0, I),
        ("for k in range(3):\n    if i > 5:\n        continue\n    out[i] = positive(x[i])", I < 5,
         np.where(I == 5, 1, 100)),
        ("if i == 0:\n    never(i)\nout[i] = i", I == 0, I),
        ("never(i)\nout[i] = i", I >= 0, I),
        ("s = cuda.shared.array(64, float32)\nif i == 9:\n    raise ValueError\ns[i] = i\ncuda.syncthreads()\n"
         "if i < 8:\n    out[i] = s[i + 1]", I == 9, np.where(I < 8, I + 1, 100)),
    ],
)  # fmt: skip
def test_a_thread_that_raises_ends_and_the_others_go_on(body, ended, expected):
    trace = run(body, 1 if "shared" in body else 2)
    np.testing.assert_array_equal(trace.outputs[1], np.where(ended, 100, expected))
    assert [f.kind for f in trace.errors if f.kind != "unwritten"] == ["raised"] * bool(np.any(ended))
    if np.any(ended):
        finding = next(f for f in trace.errors if f.kind == "raised")
        assert finding.count == np.count_nonzero(ended)
        assert finding.threads[0].thread == (int(np.argmax(ended)) % 32 if "shared" not in body else 9, 0, 0)


def test_the_counters_leave_out_what_an_ended_thread_would_have_stored():
    trace = run("if i < 32:\n    raise ValueError\nout[i] = x[i] * 2.0")
    assert trace.counters.global_stores == trace.counters.global_loads == 32
    assert trace.counters.flops_by_dtype == {"float64": 32}


def test_the_finding_says_which_thread_raised_what():
    trace = run("if i == 35:\n    raise ValueError('bad', LIMIT)\nout[i] = i")
    (finding,) = trace.errors
    assert "thread 3 of block 1 raised ValueError: bad, 3." in finding.message and finding.line == 5
    assert finding.threads[0].block == (1, 0, 0)


def test_a_class_of_the_module_counts_as_its_builtin_base():
    trace = run("raise Unfit('no')")
    assert trace.raised.error == "ValueError"


@pytest.mark.skipif(cuda.on_gpu(), reason="a GPU gives no FindingWarning")
def test_a_kernel_in_debug_mode_raises_on_the_host():
    @cuda.jit(debug=True, opt=False)
    def kernel(out):
        i = cuda.grid(1)
        if i == 5:
            raise IndexError("outside")
        out[i] = i

    out = np.zeros(8)
    with (
        pytest.warns(FindingWarning, match="raised IndexError"),
        pytest.raises(IndexError, match=r"line \d+, tid=\[0, 0, 1\] ctaid=\[0, 0, 1\]: outside"),
    ):
        kernel[2, 4](out)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError(i)", "write plain text"),
        ("raise ValueError('bad %d' % i)", "write plain text"),
        ("assert i < 3, f'{i}'", "write plain text"),
        ("raise 3", "not an exception for a kernel"),
        ("raise x", "not an exception for a kernel"),
        ("raise out[0]", "not an exception for a kernel"),
        ("raise", "names one exception"),
        ("raise ValueError from None", "names one exception"),
        ("raise KeyboardInterrupt", "not an exception for a kernel"),
    ],
)
def test_what_numba_cannot_raise_is_refused(body, message):
    with pytest.raises(KernelError, match=message):
        run(body)
