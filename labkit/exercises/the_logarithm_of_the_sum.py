"""Log-sum-exp in one pass, for logits of any size."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, last_block_size, random_matrix
from labkit.ladder import Expected

BLOCK, WARP = (64,), 32
MAX_LOGIT = 1e4
MAX_SUM = float(np.finfo(np.float32).max)
SMALL_SHARE = -12.5  # a logit whose exponential counts only together with others


def make_launch(rng, rows, columns):
    x = random_matrix(rng, rows, columns) * (10 ** rng.uniform(-1, 1.5, columns))
    x = np.where(rng.random(columns) < 0.3, np.sort(x, 0), x)  # a new maximum at each step
    x = x + 10 ** rng.uniform(1, 4, columns) * rng.choice((-1, 1), columns)
    x = np.where(rng.random(columns) < 0.3, rng.uniform(-MAX_LOGIT, MAX_LOGIT, x.shape), x).astype(np.float32)
    masked = rng.random((rows, columns)) < rng.choice((0, 0.1, 0.5), columns)
    masked |= np.arange(rows)[:, None] < np.where(rng.random(columns) < 0.2, rng.integers(1, rows + 1, columns), 0)
    if columns > 5 and rows > 5:  # one logit of 0, and many far below it
        x[:, columns // 2], masked[:, columns // 2] = SMALL_SHARE, False
        x[rows // 2, columns // 2] = 0
        masked[:, 0], masked[:, 1] = np.arange(rows) % 3 == 1, False
        x[:, 0] = rng.uniform(-MAX_LOGIT, 1 - MAX_LOGIT, rows)  # least logits, which minus infinity still is far below
        x[:, 1] = 0  # relative to the first of these, the exponentials add up to infinity
        x[0, 1] = -np.log(1.2 * MAX_SUM / (rows - 1))
    x[masked] = -np.inf
    all_masked = masked.all(0)
    col_max = np.where(all_masked, 0, x.max(0)).astype(float)
    exps = np.exp(x - col_max)
    col_sum = exps.sum(0)
    mean_distance = (exps * np.where(masked, 0, col_max - x)).sum(0) / np.maximum(col_sum, 1)
    rounded = (rows / 2 + 2) * np.abs(col_max)  # each step may round a large number
    bound = EPS * (rounded + 4 * rows + 4 * mean_distance + 8)
    result = np.where(all_masked, -np.inf, col_max + np.log(np.maximum(col_sum, 1)))
    log_sum = np.where(all_masked, -np.inf, np.log(np.maximum(col_sum, 1)))
    return Launch(
        label=f"x {rows} x {columns}, one thread per column",
        args=(x, unwritten_array((columns,))),
        outputs={1: Expected(result, bound)},
        grid=grid_for((columns,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", rows * columns, "each element of x once"),
            Budget("global stores", columns, "one number per column"),
            Budget("load requests", rows * -(-columns // WARP), "one for 32 columns of a row"),
            Budget(LOCAL_NUMBERS, 8, "8: a column may have any length"),
            Budget(SHARED_BYTES, 0, "each thread has one column"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(columns, BLOCK[0]), "one thread per column"),),
        mistakes=(
            Mistake(
                "the maximum were not added in the end",
                lambda: {1: Expected(log_sum, bound)},
                "The sum is relative to the maximum: add the maximum to its logarithm.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="The logarithm of the sum",
    task="Write log(sum of exp(x)) of each column, and load each element once. Each logit is between -10,000 and "
    "10,000, or minus infinity; if a whole column is minus infinity, so is the result. A column may have any length.",
    points=2,
    function="log_sum_exp",
    make_launch=make_launch,
    sizes=((40, 70), (33, 9), (1, 5)),  # rows, columns
    random_sizes=(
        (range(2_001, 3_000, 2), (13, 14)),  # too long for the variables of a thread
        (range(7, 50, 2), range(65, 140, 3)),
        (Above(60), (1, 2, 31)),
        ((1, 2, 3), Above(80)),
    ),
)
