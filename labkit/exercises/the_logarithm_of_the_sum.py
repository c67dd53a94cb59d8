"""The logarithm of a sum of exponentials, in one pass, wherever the logits lie."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, matrix
from labkit.ladder import Expected

BLOCK, WARP = (64,), 32
SIZES = ((40, 70), (33, 9), (1, 5))  # rows, columns


def make_launch(rng, rows, columns):
    x = matrix(rng, rows, columns) * (10 ** rng.uniform(-1, 1.5, columns))
    x = np.where(rng.random(columns) < 0.3, np.sort(x, 0), x)  # a new maximum at each step
    x = (x + 10 ** rng.uniform(1, 4, columns) * rng.choice((-1, 1), columns)).astype(np.float32)
    masked = rng.random((rows, columns)) < rng.choice((0, 0.1, 0.5), columns)
    masked |= np.arange(rows)[:, None] < np.where(rng.random(columns) < 0.2, rng.integers(1, rows + 1, columns), 0)
    x[masked] = -np.inf
    nothing = masked.all(0)
    maximum = np.where(nothing, 0, x.max(0)).astype(float)
    shares = np.exp(x - maximum)
    total = shares.sum(0)
    apart = (shares * np.where(masked, 0, maximum - x)).sum(0) / np.maximum(total, 1)
    off = EPS * ((rows / 2 + 2) * np.abs(maximum) + 4 * rows + 4 * apart + 8)  # each step may round what is far from 0
    result = np.where(nothing, -np.inf, maximum + np.log(np.maximum(total, 1)))
    return Launch(
        label=f"x {rows} x {columns}, a thread a column",
        args=(x, unwritten_array((columns,))),
        outputs={1: Expected(result, off)},
        grid=grid_for((columns,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", rows * columns, "each element of x once"),
            Budget("global stores", columns, "a number for each column"),
            Budget("load requests", rows * -(-columns // WARP), "one for 32 columns of a row"),
            Budget(LOCAL_NUMBERS, 8, "8: a column may have any length"),
            Budget(SHARED_BYTES, 0, "none: a thread has a column"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, columns - (columns - 1) // BLOCK[0] * BLOCK[0], "a thread for each column"),),
    )


EXERCISE = Exercise(
    id="the-logarithm-of-the-sum",
    title="The logarithm of the sum",
    task="Write log(sum of exp(x)) of each column, and load each element once. The logits lie anywhere between -10,000 "
    "and 10,000, or are minus infinity; where all of a column are, so is the result. A column may have any length.",
    points=2,
    function="log_sum_exp",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=((range(7, 50, 2), range(65, 140, 3)), (Beyond(60), (1, 2, 31)), ((1, 2, 3), Beyond(80))),
)
