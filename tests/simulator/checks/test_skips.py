"""What lets threads pass by a barrier."""

import ast

import pytest

from labkit.simulator.checks.skips import find_skip

KERNEL = """def kernel(x, n):
    i, t = cuda.grid(1), cuda.threadIdx.x
    place = i + n
    first = cuda.blockIdx.x * 32
    {before}
    for left in range(0, n, 8):
        if {test}:
            {leave}
        cuda.syncthreads()
"""


@pytest.mark.parametrize("leave", ["continue", "break", "return"])
def test_a_statement_that_skips_the_barrier_is_found_with_what_differs(leave):
    skip = find_skip(ast.parse(KERNEL.format(before="pass", test="left < place - n", leave=leave)).body[0], 9)
    assert (skip.word, skip.line, skip.test_line, skip.names) == (leave, 8, 7, ("place",))
    assert skip.told == ": `place` differs from thread to thread"


def test_a_return_before_the_loop_is_found():
    text = KERNEL.format(before="if t > 5: return", test="left < first", leave="continue")
    skip = find_skip(ast.parse(text).body[0], 9)
    assert (skip.word, skip.line, skip.names) == ("return", 5, ("t",))


@pytest.mark.parametrize(("test", "leave"), [("left < first", "continue"), ("left < place", "n = 1")])
def test_what_all_threads_decide_alike_is_no_skip(test, leave):
    assert find_skip(ast.parse(KERNEL.format(before="pass", test=test, leave=leave)).body[0], 9) is None


def test_a_barrier_in_a_branch_is_told_by_its_branch():
    text = KERNEL.format(before="pass", test="left < place", leave="continue").replace("cuda.sync", "if t: cuda.sync")
    assert find_skip(ast.parse(text).body[0], 9) is None
