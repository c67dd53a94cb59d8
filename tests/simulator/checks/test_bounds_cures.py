"""Suggested fixes of an access outside an array: a guard that works, or the mistake behind it."""

import numpy as np
import pytest
from cells import kernel_in
from numba.np.numpy_support import from_dtype

import labkit
from labkit import ptx

RECORD = np.dtype([("at", np.float32, (3,)), ("id", np.int32)])
GUARDS = {
    "x[i]": "Guard the access, for instance `if i < x.size:`.",
    "x[i - 140]": "Guard the access, for instance `if 0 <= i - 140 < x.size:`.",
    "x[2:][i]": "Guard the access, for instance `if i < x[2:].size:`.",
    "A[i][0]": "Guard the access, for instance `if i < A.shape[0]:`.",
    "A[0, i // 2 + i // 2]": "Guard the access, for instance `if i // 2 + i // 2 < A.shape[1]:`.",
    "p[i].id": "Guard the access, for instance `if i < p.size:`.",
    'p["at"][0, i]': "Guard the access, for instance `if i < 3:`.",
    "own[i % 3]": "Guard the access, for instance `if i % 3 < own.size:`.",
    "ptx.load4(x, 4 * i)[0]": "Guard the access, for instance `if 4 * i + 3 < x.size:`.",
    "ptx.load4(x, 4 * i ^ 0)[0]": "Guard the access, for instance `if (4 * i ^ 0) + 3 < x.size:`.",
}
NAMES = dict(ptx=ptx, record=from_dtype(RECORD))


def the_error(text, grid, block, *arguments):
    (finding,) = [f for f in labkit.simulate(kernel_in(text, **NAMES), grid, block, *arguments).errors if f.index]
    assert finding.kind == "bounds"
    return finding.message


@pytest.mark.parametrize("access", GUARDS)
def test_a_guard_is_python_and_holds(access):
    text = f"""
@cuda.jit
def kernel(x, A, p, out):
    i = cuda.grid(1)
    own = cuda.local.array(2, int32)
    own[0] = own[1] = 0
    out[i] = {access}
"""
    arguments = np.ones(130, np.float32), np.ones((12, 100), np.float32), np.ones(100, RECORD), np.ones(160)
    message = the_error(text, 5, 32, *arguments)
    assert message.endswith(GUARDS[access])
    guard = message[message.index("`if") + 1 : -2]
    mended = text.replace(f"    out[i] = {access}", f"    {guard}\n        out[i] = {access}")
    assert labkit.simulate(kernel_in(mended, **NAMES), 5, 32, *arguments).errors == ()


SQUARES = """
@cuda.jit
def kernel(A, T):
    col, row = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        {}
"""


def test_rows_and_columns_that_may_be_swapped_are_asked_for_first():
    A, T = np.ones((20, 30), np.float32), np.ones((30, 20), np.float32)
    message = the_error(SQUARES.format("T[row, col] = A[row, col]"), (2, 2), (16, 16), A, T)
    assert "Are rows and columns swapped? `T[col, row]` would lie inside." in message
    assert message.endswith("If you mean `T[row, col]`, guard the access, for instance `if col < T.shape[1]:`.")


@pytest.mark.parametrize("shape", [(20, 30), (30, 20)])
def test_a_guard_left_out_is_no_swap(shape):
    unguarded = "@cuda.jit\ndef kernel(T):\n    col, row = cuda.grid(2)\n    T[row, col] = 0"
    assert "swapped" not in the_error(unguarded, (2, 2), (16, 16), np.ones(shape, np.float32))


def test_dynamic_shared_memory_gets_its_bytes_from_the_launch():
    text = """
@cuda.jit
def kernel(x):
    s = cuda.shared.array(0, float32)
    s[cuda.threadIdx.x] = x[0]
"""
    assert "`kernel[grid, block, stream, bytes]`" in the_error(text, 1, 32, np.ones(32, np.float32))
    short = labkit.simulate(kernel_in(text), 1, 32, np.ones(32, np.float32), shared_bytes=64).errors
    assert any("as large as the block needs" in f.message for f in short)
