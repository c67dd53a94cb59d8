"""A verdict that a learner reads names the one change that makes a wrong answer right, if there is one."""

import pytest
from exercise_cells import cell, defined
from sampling import sampled

from labkit.checking.check import ALONE, judge
from labkit.exercises import exercise, exercise_ids

SLIPS = [
    ("write-saxpy", "cuda.grid(1)", "cuda.threadIdx.x", "Line 3: this index leaves out the block"),
    ("the-game-of-life", "col, row = cuda.grid(2)", "row, col = cuda.grid(2)", "gives x, the column, first"),
    ("write-the-tiled-matmul", "A_tile[k, y]", "A_tile[y, k]", "the indices of `A_tile[y, k]` are in the wrong order"),
    ("a-split-in-pages", "lane, end, 32)", "lane, end)", "this `range` has no step, and goes on by 1"),
    ("the-logarithm-of-the-sum", "np.float32(-3e38)", "np.float32(0)", "above values that it should find"),
    ("filter-sound", "        cuda.syncthreads()\n", "", "a barrier is missing"),
    ("when-does-it-pay", "-(-cost // gain)", "cost // gain", "rounds down, and leaves out what is over"),
]


def judged(id, text, repairs=True):
    rules = exercise(id)
    kernel = defined(id, text, f"<{id}, repaired>")[rules.function]
    return judge(rules, kernel, seed=1, repairs=repairs)


@pytest.mark.parametrize(("id", "right", "wrong", "said"), SLIPS, ids=[slip[0] for slip in SLIPS])
def test_a_slip_is_named_with_its_line_and_what_to_write(id, right, wrong, said):
    text = cell(id)
    assert right in text
    verdict = judged(id, text[::-1].replace(right[::-1], wrong[::-1], 1)[::-1])
    assert said in verdict.message and verdict.message.endswith(ALONE), verdict
    assert f"Line {verdict.line}: " in verdict.message.splitlines()[-1]


def test_nothing_is_searched_unless_a_learner_reads_the_verdict():
    text = cell("write-saxpy").replace("cuda.grid(1)", "cuda.threadIdx.x")
    assert ALONE not in judged("write-saxpy", text, repairs=False).message


@pytest.mark.sample(8)
@pytest.mark.parametrize("id", sampled([id for id in exercise_ids() if exercise(id).machine != "cpu"], 12))
def test_the_code_that_an_exercise_gives_is_not_repaired(id):
    """Else its first check would tell the solution."""
    assert ALONE not in judged(id, cell(id, "blank")).message
