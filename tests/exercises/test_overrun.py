"""What an exceeded budget is blamed on: an access that a loop repeats, a walk down a column, a barrier in a loop."""

import pytest
from exercise_cells import cell, function

from labkit.exercises import check

SUMS = "        x, y = X[row, col], Y[row, col]\n        xy += x * y\n        xx += x * x\n        yy += y * y\n"
CASES = {
    "an element that is loaded in two places": (
        "once-through-memory",
        SUMS,
        SUMS.replace("xx += x * x", "xx += X[row, col] * x"),
        "`X[row, col]` is loaded in 2 places: load it once into a variable, and use that.",
    ),
    "a walk down a column": (
        "order-the-loops",
        "        for k in range(K):\n            for j in range(N):",
        "        for j in range(N):\n            for k in range(K):",
        "`k`, of the innermost loop in line 10, goes down a column of B: each step needs another line.",
    ),
    "a barrier in the inner loop": (
        "put-the-barrier-back",
        "k, x]\n        cuda.syncthreads()",
        "k, x]\n            cuda.syncthreads()",
        "The barrier in line 20 runs in each round of the loop in line 18: move it out.",
    ),
    "the cure of the exercise itself": (
        "pad-the-tile",
        "WIDTH = TILE + 1",
        "WIDTH = TILE",
        "choose a WIDTH that puts 32 of them into 32 banks.",
    ),
    "an array without a part of its own": (
        "verify-a-draft",
        "o = p * v[d]",
        "o = p * V[d, key] if key < keys else np.float32(0)",
        "of V, which may have 560: look at `V[d, key]`",
    ),
    "threads that are not together": (
        "neighbours-together",
        cell("neighbours-together"),
        cell("neighbours-together", "blank"),
        "Let neighbouring threads (threadIdx.x) take elements that are neighbours in memory.",
    ),
}


@pytest.mark.parametrize(("id", "right", "wrong", "advice"), CASES.values(), ids=CASES)
def test_an_exceeded_budget_tells_where_it_is_spent(id, right, wrong, advice):
    assert right in cell(id)
    verdict = check(id, function(id, cell(id).replace(right, wrong)), seed=1)
    assert verdict.reason == "budget" and advice in verdict.message, verdict
