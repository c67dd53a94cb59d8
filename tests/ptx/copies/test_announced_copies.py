"""What is said of a copy whose warp tells the others by an mbarrier."""

import ast

from labkit.ptx.copies.on_lanes import _explain_announcement

KERNEL = """def kernel(x, s, full, n):
    if n == 0:
        for k in range(4):
            ptx.cp_async(s, (k,), x, (k,), 4, 4)
            if k > 0:
                {wait}
                ptx.mbarrier_arrive(full, k - 1)
        ptx.mbarrier_arrive(full, 3)
    else:
        x[0] = 1
"""


def test_the_arrive_without_a_wait_is_named():
    told = _explain_announcement(ast.parse(KERNEL.format(wait="ptx.cp_async_wait(1)")).body[0], 4)
    assert told.startswith("Line 8, `ptx.mbarrier_arrive(full, 3)`, has no wait before it: ")


def test_no_barrier_of_the_block_is_advised_in_a_branch_of_one_warp():
    told = _explain_announcement(ast.parse(KERNEL.format(wait="pass")).body[0], 4)
    assert told.endswith("and only then tell the other threads with `ptx.mbarrier_arrive`.")
    assert "syncthreads" not in told


def test_a_copy_in_no_such_branch_is_another_matter():
    kernel = ast.parse(KERNEL.format(wait="pass")).body[0]
    assert _explain_announcement(kernel, 1) == _explain_announcement(kernel, 10) == ""
