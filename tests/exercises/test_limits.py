"""An answer runs beyond the numbers in its own code: what is right up to 512 alone is not accepted."""

import numpy as np
import pytest
from exercise_cells import cell, function

from labkit.checking.check import judge
from labkit.checking.limits import list_limits
from labkit.exercises import exercise

STEP = 16


def helper(n):
    return min(n, 2 * 300)


def limited(x, n):
    for _ in range(0, min(n, 32), STEP):
        x[0] = helper(n) + 1 << 9 + 999_999


def test_numbers_are_read_in_helpers_and_constants_and_rounds_are_multiplied_by_steps():
    numbers, products = list_limits(limited)
    assert {16, 32, 300, 600} <= numbers and 999_999 not in numbers
    assert 32 * 16 in products and 32 * 600 in products


def narrow(x, n):
    x[np.uint16(n)] = np.int8(n)


def test_the_greatest_numbers_of_narrow_types_are_limits():
    assert {127, 65_535} <= list_limits(narrow)[0] and not list_limits(limited)[0] & {127, 255, 65_535}


CUTS = [
    ("write-the-tiled-matmul", "K, M = A.shape", "K = min(K, 512)"),
    ("write-the-tiled-matmul", "K, M = A.shape", "M = min(M, 2 * 1000)"),
    ("put-the-barrier-back", "N = B.shape[1]", "N = min(N, 4000)"),
    ("the-nearest-point", "M, N = P.shape[1], Q.shape[1]", "N = min(N, 1024)"),
    ("the-game-of-life", "rows, columns = board.shape", "rows = min(rows, 4096)"),
    ("city-blocks", "M, K = X.shape", "K = min(K, 512)"),
]


def cut(id, after, limit):
    line = next(line for line in cell(id).splitlines() if line.strip() == after)
    indent = line[: len(line) - len(after)]
    return cell(id).replace(line, f"{line}\n{indent}{limit}")


@pytest.mark.parametrize(("id", "after", "limit"), CUTS, ids=[f"{id} {limit}" for id, _, limit in CUTS])
def test_an_answer_that_is_right_up_to_a_limit_alone_is_refused(id, after, limit):
    verdict = judge(exercise(id), function(id, cut(id, after, limit)), seed=1)
    assert not verdict.passed and " in the code" in verdict.launch


@pytest.mark.parametrize("id", ["write-the-tiled-matmul", "share-the-weights", "once-through-memory", "the-mask"])
def test_a_number_that_limits_nothing_is_no_reason(id):
    name = exercise(id).function
    start = cell(id).index(":\n", cell(id).index(f"def {name}(")) + 2
    text = f"{cell(id)[:start]}    unused = 3000\n{cell(id)[start:]}"
    assert judge(exercise(id), function(id, text), seed=1).passed
