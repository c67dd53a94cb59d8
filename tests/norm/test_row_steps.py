"""Which step takes a norm of rows: one that takes its width, whatever that is."""

import pytest

from labkit import norm
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP32
from labkit.ladder import TooLarge
from labkit.norm.row_steps import step_of
from labkit.simulator import host

PROBLEMS = norm.RowForward, norm.RowBackward


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize("columns", [1, 511, 512, 513, 8191, 8192, 8193, 131_071, 131_072])
def test_a_step_takes_the_rows_that_it_is_chosen_for(of, columns, format):
    problem = of(1, columns, "rms")
    step = step_of(problem, format)
    assert step.problem is of
    assert step.launches(*problem.operands(format), format=format, workspace=Workspace(memory=host))


@pytest.mark.parametrize(("columns", "format"), [(100, FP32), (3000, BF16), (20_000, FP32)], ids=str)
@pytest.mark.parametrize("of", PROBLEMS)
def test_the_step_is_right(of, columns, format):
    problem = of(3, columns)
    before = problem.operands(format)
    assert problem.is_right(before, step_of(problem, format).simulate(*before, format=format).operands, format)


def test_the_widest_rows_of_bfloat16_have_no_step_forward():
    assert step_of(norm.RowForward(1, 131_073)).slug == "three_reads"
    assert step_of(norm.RowBackward(1, 131_073), BF16).slug == "sums_first"
    with pytest.raises(
        TooLarge, match="a row has 131073 values of bfloat16, and steps take 131072: convert it to float32"
    ):
        step_of(norm.RowForward(1, 131_073), BF16)
