"""The largest blocks that steps make, for which no example is large enough, compute what is expected."""

from math import prod

import numpy as np
import pytest
from sampling import WHOLE

from labkit import cuda
from labkit.ladder import every_ladder

SMALL = 2**16  # elements of an array, above which the simulator takes long
CASES = [
    pytest.param(step, format, problem, id=f"{step.path} {format} {problem}")
    for step in (step for each in every_ladder() for step in each)
    for format in (step.formats if WHOLE else step.formats[:1])
    for problem in (step.largest if WHOLE else step.largest[:1])
    if max(map(prod, problem.shapes.values())) <= SMALL
]


@pytest.mark.parametrize(("step", "format", "problem"), CASES)
def test_the_largest_blocks_write_what_the_problem_expects(step, format, problem):
    before = problem.operands(format, seed=2)
    after = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*after, format=format)
    found = [X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in after]
    assert problem.is_right(before, found, format)
