"""Control flow of statements."""

import ast

import pytest
from cells import run_cell

from labkit.simulator.reading.syntax import is_spin, may_jump, never_ends
from labkit.simulator.translator.control_flow import may_block


def statements(text):
    return ast.parse(text).body


@pytest.mark.parametrize(
    "text, leaves",
    [
        ("x = 1", False),
        ("if x: return", True),
        ("if x: y = 1\nelse: break", True),
        ("for k in range(3): break", False),
        ("for k in range(3): continue", False),
        ("while x:\n    for k in range(3): return", True),
    ],
)
def test_jumps(text, leaves):
    assert may_jump(statements(text)) is leaves


@pytest.mark.parametrize(
    "text, endless",
    [
        ("while x < 3: y += 1", True),
        ("while x < 3: x += 1", False),
        ("while True:\n    if y: break", False),
        ("while True:\n    for k in range(3): break", True),
        ("while flag[0] == 0: pass", False),
        ("while x < 3: return", False),
    ],
)
def test_never_ends(text, endless):
    assert never_ends(statements(text)[0]) is endless


@pytest.mark.parametrize(
    "text, spins",
    [
        ("while flag[0] == 0: pass", True),
        ("while flag[0] == 0: cuda.threadfence()", True),
        ("while flag[0] == 0: n += 1", False),
        ("while n < 3: n = cuda.atomic.add(x, 0, 1)", True),
    ],
)
def test_is_spin(text, spins):
    assert is_spin(statements(text)[0]) is spins


def test_a_kernel_blocks_where_a_device_function_of_its_device_function_waits():
    scope = run_cell(
        """
        @cuda.jit(device=True)
        def wait():
            cuda.syncthreads()

        @cuda.jit(device=True)
        def step(x):
            wait()
            return x

        @cuda.jit(device=True)
        def twice(x):
            return twice(x) + 1

        @cuda.jit
        def waiting(x):
            x[0] = step(x[1])

        @cuda.jit
        def free(x):
            x[0] = twice(x[1])
        """
    )
    assert may_block(scope["waiting"].py_func, {})
    assert not may_block(scope["free"].py_func, {})
