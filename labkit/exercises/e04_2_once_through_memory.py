"""Exercise 04.2: three sums over the same rows, in one pass."""

import numpy as np

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Exercise, Expected, Launch, Variant
from labkit.exercises.problems import matrix, unwritten

SIZES = ((5, 96), (12, 77))  # rows, columns


def launch(rng, M, N):
    X, Y = matrix(rng, M, N), matrix(rng, M, N)
    pairs = ((X, Y), (X, X), (Y, Y))
    products = np.stack([a.astype(np.float64) * b for a, b in pairs])
    return Launch(
        label=f"X and Y {M} x {N}, a warp a row",
        args=(X, Y, unwritten((M, 3))),
        outputs={2: Expected(products.sum(axis=2).T, N * np.finfo(np.float32).eps * np.abs(products).sum(axis=2).T)},
        grid=(M,),
        block=(32,),
        budgets=(Budget("global loads", 2 * M * N, "2 * M * N: each element of X and of Y once"), FLOAT32_ALONE),
    )


_LOADS = "        x, y = X[row, col], Y[row, col]\n"
_THREE_LOOPS = """    for col in range(lane, X.shape[1], 32):
        xy += X[row, col] * Y[row, col]
    for col in range(lane, X.shape[1], 32):
        xx += X[row, col] * X[row, col]
    for col in range(lane, X.shape[1], 32):
        yy += Y[row, col] * Y[row, col]
"""
_SOLVED = f"""    for col in range(lane, X.shape[1], 32):
{_LOADS}        xy += x * y
        xx += x * x
        yy += y * y
"""
_TWO_LOOPS = """    for col in range(lane, X.shape[1], 32):
        x, y = X[row, col], Y[row, col]
        xy += x * y
        xx += x * x
    for col in range(lane, X.shape[1], 32):
        y = Y[row, col]
        yy += y * y
"""
_BACKWARDS = """    col = X.shape[1] - 1 - lane
    while col >= 0:
        x, y = X[row, col], Y[row, col]
        xy += x * y
        xx += x * x
        yy += y * y
        col -= 32
"""

EXERCISE = Exercise(
    id="04.2",
    title="Once through memory",
    task="This kernel goes through its rows three times. "
    "Make it go through them once, so that it loads each element of X and of Y a single time.",
    points=2,
    function="three_sums",
    launch=launch,
    sizes=SIZES,
    drawn=((range(6, 20), range(100, 200)), (range(3, 12), range(1, 32))),
    variants=(
        Variant("three passes", "budget", ((_SOLVED, _THREE_LOOPS),)),
        Variant("two passes", "budget", ((_SOLVED, _TWO_LOOPS),)),
        Variant("one pass that loads again and again", "budget", (("xx += x * x", "xx += X[row, col] * X[row, col]"),)),
        Variant("the rows in float64", "budget", (("xy = xx = yy = np.float32(0)", "xy = xx = yy = 0.0"),)),
        Variant("the first 32 columns", "result", (("range(lane, X.shape[1], 32)", "range(lane, 32, 32)"),)),
        Variant(
            "a length of the book's",
            "result",
            (("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 96), 32)"),),
        ),
        Variant("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
        Variant("two sums exchanged", "result", (("xx += x * x", "xx += y * y"), ("yy += y * y", "yy += x * x"))),
        Variant(
            "at least 32 columns",
            "bounds",
            (
                (
                    "    xy = xx = yy = np.float32(0)\n",
                    "    x, y = X[row, lane], Y[row, lane]\n    xy, xx, yy = x * y, x * x, y * y\n",
                ),
                ("range(lane, X.shape[1], 32)", "range(lane + 32, X.shape[1], 32)"),
            ),
        ),
        Variant("from the other end", "solved", ((_SOLVED, _BACKWARDS),)),
    ),
)
