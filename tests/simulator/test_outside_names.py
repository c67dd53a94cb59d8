"""Names from outside a kernel: types under every name of numba's and NumPy's, limits of a type, None, private names."""

from types import ModuleType

import numba
import numpy as np
import pytest
from cells import kernel_in
from numba import types
from numba_oracle import variable_types

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError
from labkit.simulator.run import translated

N = 32
I = np.arange(N)
_SCALE = 3


@cuda.jit(device=True)
def _add(a, b=None):
    if b is None:
        return a + 1
    return a + b[0]


@cuda.jit(device=True)
def unless_none(a, b):
    return a if b is None else a * b


module = ModuleType("module")
module._OFFSET = 7
module._add = _add
NAMES = dict(
    nb=numba, types=types, module=module, _add=_add, unless_none=unless_none, _SCALE=_SCALE, NOTHING=None, SIZES=(4, 8)
)


def kernel_of(body, start="i = cuda.grid(1)"):
    lines = "".join(f"    {line}\n" for line in [start, *body.split("\n")])
    return kernel_in(f"@cuda.jit\ndef kernel(x, out):\n{lines}", **NAMES)


def run(body):
    return labkit.simulate(kernel_of(body), 1, N, np.arange(N, dtype=np.float32), np.zeros(N)).outputs[1]


TYPED = """
a = nb.size_t(i); b = nb.types.int16(i); c = types.uint8(i); d = np.single(i); e = np.int_(i); f = nb.f4(i)
a = nb.double(i); b = nb.ssize_t(i); c = nb.b1(i); d = np.intc(i); e = np.half(i); f = np.byte(i)
""".strip().splitlines()
LIMITS = """np.iinfo(np.int32).max np.iinfo(nb.uint64).max np.iinfo(np.int8).bits np.finfo(np.float32).eps
np.finfo(x.dtype).bits np.finfo(np.float64).min np.finfo(types.float32).tiny np.finfo(np.float32).precision""".split()


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("body", TYPED)
def test_they_have_numbas_types(body):
    kernel = kernel_of(body, "i = x.size")
    kinds = types.Array(types.float32, 1, "C"), types.Array(types.float64, 1, "C")
    theirs = variable_types(kernel.py_func, kinds)
    ours = translated(kernel, np.zeros(4, np.float32), np.zeros(4)).variables
    assert ours.keys() >= set("abc") and all(theirs[n] == ours[n] for n in ours if n in theirs)


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_of_a_type_have_numbas_type_and_value(limit):
    kernel = kernel_of(f"a = {limit}\nout[i] = a")
    theirs = kernel_in(f"@nb.njit\ndef function(x):\n    return {limit}", **NAMES)
    x = np.zeros(N, np.float32)
    np.testing.assert_array_equal(run(f"out[i] = {limit}"), np.full(N, theirs(x)))
    assert translated(kernel, x, np.zeros(N)).variables["a"] == {
        theirs.overloads[theirs.signatures[0]].signature.return_type
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out[i] = np.iinfo(np.int32).max - np.iinfo(np.int32).min", np.full(N, 2.0**32 - 1)),
        ("low = np.finfo(np.float32).min\nout[i] = max(low, x[i])", I),
        ("limits = np.iinfo(np.uint8)\nout[i] = limits.max + limits.bits", np.full(N, 263)),
        ("s = cuda.shared.array(32, dtype=nb.types.float32)\ns[i] = i\nout[i] = s[i]", I),
        ("out[i] = _SCALE * i + module._OFFSET + module._add(i)", 4 * I + 8),
        ("out[i] = _add(i) + 100 * _add(i, None) + 10000 * _add(i, x[5:])", 10101 * I + 101 + 50000),
        ("out[i] = unless_none(i, None) + unless_none(i, 3)", 4 * I),
        ("if NOTHING is None:\n    out[i] = i\nelse:\n    out[i] = NOTHING[i]", I),
        ("a = None\nb = a\nout[i] = b is None", np.ones(N)),
        ("a = None\nif not a:\n    out[i] = 2", np.full(N, 2)),
        ("out[i] = isinstance(i, int) + 2 * isinstance(x[i], (np.float32, float)) + 4 * isinstance(x[i], float)",
         np.full(N, 3)),
        ("out[i] = isinstance((1, 2), tuple) + 2 * isinstance(i > 3, bool) + 4 * isinstance(int32(1), int)",
         np.full(N, 3)),
    ],
)  # fmt: skip
def test_they_have_their_values(body, expected):
    np.testing.assert_array_equal(run(body), expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[i] = None", "is None"),
        ("out[i] = NOTHING + 1", "between None and int64"),
        ("a = None\nif i > 3:\n    a = 2.0\nout[i] = a", "make them the same"),
        ("out[i] = np.iinfo(np.float32).max", "takes one dtype of integers"),
        ("out[i] = np.finfo('float32').max", "takes one dtype of floats"),
        ("out[i] = isinstance(i, list)", "neither the type of a number nor"),
        ("out[i] = np.float32", "is a type, not a value"),
        ("out[i] = module.__name__", "for a kernel"),
    ],
)
def test_what_has_no_meaning_is_refused(body, message):
    with pytest.raises(KernelError, match=message):
        run(body)
