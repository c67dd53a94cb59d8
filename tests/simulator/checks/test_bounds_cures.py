"""Suggested fixes of an access outside an array: a guard that works, or the mistake behind it."""

import numpy as np
import pytest
from cells import kernel_in, line_of
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
    "x[i + i // 4 * two]": "Is `i + i // 4 * two` the index that you mean? If so, guard the access, for instance "
    "`if i + i // 4 * two < x.size:`.",
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
    two = own[0] + 2
    out[i] = {access}
"""
    arguments = np.ones(130, np.float32), np.ones((12, 100), np.float32), np.ones(100, RECORD), np.ones(160)
    message = the_error(text, 5, 32, *arguments)
    assert message.endswith(GUARDS[access])
    guard = message[message.index("`if") + 1 : -2]
    mended = text.replace(f"    out[i] = {access}", f"    {guard}\n        out[i] = {access}")
    assert labkit.simulate(kernel_in(mended, **NAMES), 5, 32, *arguments).errors == ()


def test_an_index_that_was_split_off_is_questioned_before_a_guard_is_advised():
    text = """
@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    row, col = i // 8, i % 8
    x[row, col] = i
"""
    message = the_error(text, 1, 64, np.zeros((4, 8), np.float32))
    split = f"Is `row = i // 8` (line {line_of(kernel_in(text), 'row, col')}) right?"
    assert message.endswith(f"{split} If so, guard the access, for instance `if row < x.shape[0]:`.")


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


# A kernel's line that lets an index through, the access, the cure, and what to write in place of what.
TOO_WIDE = {
    "a stencil": ("if i < x.size:", "x[i + 1]", "`i < x.size`, is too wide by 1 here: write `i + 1 < x.size`."),
    "a stencil in one line": ("if i > 2 and 70 > i:", "x[1 + i]", "`70 > i`, lets it through: write `1 + i < x.size`."),
    "at most the size": ("if i <= x.size:", "x[i]", "`i <= x.size`, is too wide by 1 here: write `i < x.size`."),
    "another array's size": ("if i < out.size:", "x[i]", "write `i < x.size`, or pass a larger `x`."),
    "an early return": (
        "if i < 0 or i > n:\n        return\n    if True:",
        "x[i]",
        "`i > n`, is too wide by 1 here: write `i >= x.size`.",
    ),
    "a loop": (
        "for k in range(x.size + 1):",
        "x[k]",
        "The loop in line 4 goes too far, `range(x.size + 1)`: end it at `x.size`.",
    ),
    "a loop over a part": (
        "for k in range(i, i + 4):",
        "x[k - 2]",
        "The loop in line 4 goes too far, `range(i, i + 4)`: end it at `min(i + 4, x.size + 2)`.",
    ),
}


@pytest.mark.parametrize("name", TOO_WIDE)
def test_a_guard_or_a_loop_that_goes_too_far_is_named_and_its_fix_holds(name):
    guard, access, cure = TOO_WIDE[name]
    text = f"\n@cuda.jit\ndef kernel(x, out, n):\n    i = cuda.grid(1)\n    {guard}\n        out[0] = {access}\n"
    arguments = np.ones(64, np.float32), np.ones(160, np.float32), 64
    kernel = kernel_in(text)
    [found] = [f for f in labkit.simulate(kernel, 5, 32, *arguments).errors if f.kind == "bounds"]
    assert found.remedy.endswith(cure) and f"in line {line_of(kernel, guard.splitlines()[0])}" in found.remedy
    wrong, right, *_ = found.remedy.split("`")[1::2]
    if "loop" in name:
        wrong, right = wrong.split("(")[1][:-1].split(", ")[-1], right
    mended = kernel_in(text.replace(wrong, right))
    assert [f for f in labkit.simulate(mended, 5, 32, *arguments).errors if f.kind == "bounds"] == []


@pytest.mark.parametrize("width", ["rows", "cols + 3"])
def test_a_wrong_length_of_a_row_is_asked_for(width):
    text = f"""
@cuda.jit
def kernel(A, rows, cols):
    col, row = cuda.grid(2)
    if row < rows and col < cols:
        A[row * ({width}) + col] = 0
"""
    launch = (2, 2), (16, 16), np.ones(600, np.float32), 30, 20
    [found] = [f for f in labkit.simulate(kernel_in(text), *launch).errors if f.kind == "bounds"]
    assert found.remedy == (
        f"Is `{width}` the length of a row? The guard in line 4 bounds col by `cols`: `row * cols + col` would lie "
        "inside, and so would `col * rows + row`."
    )
    for index in found.remedy.split("`")[5::2]:
        assert labkit.simulate(kernel_in(text.replace(f"row * ({width}) + col", index)), *launch).errors == ()


def test_a_guard_is_not_blamed_for_what_it_does_not_guard():
    """Its variable changes behind it, or it guards another index, or the row is padded."""
    for guard, access in {"if i < x.size:\n        i += 2": "x[i]", "if i < x.size:": "x[i + n]"}.items():
        text = f"\n@cuda.jit\ndef kernel(x, n):\n    i = cuda.grid(1)\n    {guard}\n        {access} = 0\n"
        assert the_error(text, 2, 32, np.ones(64, np.float32), 3).count("uard the access") == 1
    padded = """
@cuda.jit
def kernel(A, rows, cols, pitch):
    col, row = cuda.grid(2)
    if row < rows and col < cols:
        A[row * pitch + col] = 0
"""
    assert "length of a row" not in the_error(padded, (2, 2), (16, 16), np.ones(500, np.float32), 30, 20, 32)


def test_a_guard_in_a_device_function():
    text = """
@cuda.jit(device=True)
def following(x, i):
    if i < x.size:
        return x[i + 1]
    return float32(0)

@cuda.jit
def kernel(x):
    i = cuda.grid(1)
    x[0] = following(x, i)
"""
    message = the_error(text, 1, 64, np.ones(64, np.float32))
    assert message.endswith("The guard in line 3, `i < x.size`, is too wide by 1 here: write `i + 1 < x.size`.")


def test_a_return_only_where_both_indices_are_outside():
    text = """
@cuda.jit
def kernel(A):
    col, row = cuda.grid(2)
    if row >= A.shape[0] and col >= A.shape[1]:
        return
    A[row, col] = 0
"""
    launch = (2, 2), (16, 16), np.ones((20, 30), np.float32)
    [found] = labkit.simulate(kernel_in(text), *launch).errors
    assert found.remedy == (
        "The guard in line 4 returns only where all of `row >= A.shape[0] and col >= A.shape[1]` is true: write `or`."
    )
    assert labkit.simulate(kernel_in(text.replace(" and ", " or ")), *launch).errors == ()


def test_a_guard_that_lets_several_accesses_through_is_told_once():
    text = "@cuda.jit\ndef kernel(x):\n    i = cuda.grid(1)\n    if i < x.size:\n        x[i + 1] += x[i + 1]\n"
    assert "too wide by 1" in the_error(text, 2, 32, np.ones(64, np.float32))


def test_how_an_index_of_shared_memory_is_made_is_asked_before_its_size():
    text = """
@cuda.jit
def kernel(x):
    s = cuda.shared.array((2, 20), float32)
    row, col = cuda.threadIdx.x // 16, cuda.threadIdx.x % 16
    s[row, col] = x[0]
"""
    message = the_error(text, 1, 40, np.ones(32, np.float32))
    assert "Is `row = cuda.threadIdx.x // 16` (line 4) right? If so, make s as large as the block needs" in message


def test_a_guard_that_tests_another_index_is_named():
    text = """
@cuda.jit
def kernel(A, T):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, k = cuda.blockIdx.x * 16, y
    i = top + y
    if i < 20 and k < A.shape[0]:
        T[k, top + x] = A[k, top + x]
"""
    A, T = np.ones((30, 20), np.float32), np.ones((30, 40), np.float32)
    message = the_error(text, 2, (16, 16), A, T)
    line = line_of(kernel_in(text), "if i")
    assert "rows and columns swapped" not in message
    assert f"The guard in line {line}, `i < 20`, tests another index than `top + x`" in message
    assert message.endswith("write `top + x < A.shape[1]`.")
